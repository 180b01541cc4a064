package main

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// engine holds the parameters of one database engine.
type engine struct {
	port     int32
	data     string // the directory of the data files
	password string // the environment variable with the password
	dump     string // a shell command that writes a dump to stdout; $HOST is the database
}

var engines = map[string]engine{
	"postgresql": {5432, "/bitnami/postgresql", "POSTGRESQL_PASSWORD",
		`PGPASSWORD="$POSTGRESQL_PASSWORD" pg_dumpall --host "$HOST" --username postgres`},
	"mysql": {3306, "/bitnami/mysql/data", "MYSQL_ROOT_PASSWORD",
		`mysqldump --all-databases --host "$HOST" --user root --password="$MYSQL_ROOT_PASSWORD"`},
	"mariadb": {3306, "/bitnami/mariadb", "MARIADB_ROOT_PASSWORD",
		`mariadb-dump --all-databases --host "$HOST" --user root --password="$MARIADB_ROOT_PASSWORD"`},
}

const (
	dataVolume = "data"
	runAs      = 1001 // the user id of these images; it must be able to write to the volumes
)

// childName returns the name of the StatefulSet, the Service and the Secret.
func childName(db *Database) string { return db.Name + "-db" }

func image(db *Database) string { return "bitnami/" + db.Spec.Engine + ":" + db.Spec.Version }

func service(db *Database) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metadata(db, childName(db)),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  podLabels(db),
			Ports:     []corev1.ServicePort{{Name: "db", Port: engines[db.Spec.Engine].port}},
		},
	}
}

func statefulSet(db *Database) *appsv1.StatefulSet {
	e := engines[db.Spec.Engine]
	return &appsv1.StatefulSet{
		ObjectMeta: metadata(db, childName(db)),
		Spec: appsv1.StatefulSetSpec{
			Replicas:    &db.Spec.Replicas,
			ServiceName: childName(db),
			Selector:    &metav1.LabelSelector{MatchLabels: podLabels(db)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(db)},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(runAs))},
					Containers: []corev1.Container{{
						Name:         "db",
						Image:        image(db),
						Ports:        []corev1.ContainerPort{{Name: "db", ContainerPort: e.port}},
						Env:          []corev1.EnvVar{passwordOf(db)},
						VolumeMounts: []corev1.VolumeMount{{Name: dataVolume, MountPath: e.data}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{
								corev1.ResourceCPU:    resource.MustParse("100m"),
								corev1.ResourceMemory: resource.MustParse("256Mi"),
							},
							Limits: corev1.ResourceList{
								corev1.ResourceCPU:    resource.MustParse("500m"),
								corev1.ResourceMemory: resource.MustParse("1Gi"),
							},
						},
					}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: dataVolume},
				Spec:       volume(db),
			}},
		},
	}
}

func backupVolume(db *Database) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metadata(db, db.Name+"-backups"), Spec: volume(db)}
}

func backupJob(db *Database) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metadata(db, db.Name+"-backup"),
		Spec: batchv1.CronJobSpec{
			Schedule:          "0 3 * * *",
			ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy:   corev1.RestartPolicyOnFailure,
					SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(runAs))},
					Containers: []corev1.Container{{
						Name:         "backup",
						Image:        image(db),
						Command:      []string{"sh", "-c", engines[db.Spec.Engine].dump + ` > "/backups/$(date +%F).sql"`},
						Env:          []corev1.EnvVar{passwordOf(db), {Name: "HOST", Value: childName(db)}},
						VolumeMounts: []corev1.VolumeMount{{Name: "backups", MountPath: "/backups"}},
					}},
					Volumes: []corev1.Volume{{Name: "backups", VolumeSource: corev1.VolumeSource{
						PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: db.Name + "-backups"},
					}}},
				},
			}}},
		},
	}
}

func password(db *Database, text string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metadata(db, childName(db)), StringData: map[string]string{"password": text}}
}

func passwordOf(db *Database) corev1.EnvVar {
	return corev1.EnvVar{Name: engines[db.Spec.Engine].password, ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: childName(db)},
			Key:                  "password",
		},
	}}
}

func volume(db *Database) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(db.Spec.Storage)},
		},
	}
}

func metadata(db *Database, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: db.Namespace, Name: name, Labels: map[string]string{"app": db.Name, "managed-by": "database-operator"}}
}

func podLabels(db *Database) map[string]string { return map[string]string{"app": childName(db)} }
