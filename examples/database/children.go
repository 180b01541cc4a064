package main

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

// engine is what differs between databases.
type engine struct {
	image    string
	port     int32
	data     string // where it keeps its files
	password string // the variable that has the password
	dump     string // writes everything to its output; $HOST is the database
}

var engines = map[string]engine{
	"postgresql": {"postgres", 5432, "/var/lib/postgresql/data", "POSTGRES_PASSWORD",
		`PGPASSWORD="$POSTGRES_PASSWORD" pg_dumpall --host "$HOST" --username postgres`},
	"mysql": {"mysql", 3306, "/var/lib/mysql", "MYSQL_ROOT_PASSWORD",
		`mysqldump --all-databases --host "$HOST" --user root --password="$MYSQL_ROOT_PASSWORD"`},
	"mariadb": {"mariadb", 3306, "/var/lib/mysql", "MARIADB_ROOT_PASSWORD",
		`mariadb-dump --all-databases --host "$HOST" --user root --password="$MARIADB_ROOT_PASSWORD"`},
}

// backup is what a database has if it is to be backed up.
func backup(db *Database) []gopf.Object {
	return []gopf.Object{backupVolume(db), backupJob(db)}
}

func service(db *Database) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metadata(db, ""),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  labels(db),
			Ports:     []corev1.ServicePort{{Name: "db", Port: engines[db.Spec.Engine].port}},
		},
	}
}

func statefulSet(db *Database) *appsv1.StatefulSet {
	e := engines[db.Spec.Engine]
	return &appsv1.StatefulSet{
		ObjectMeta: metadata(db, ""),
		Spec: appsv1.StatefulSetSpec{
			Replicas:    &db.Spec.Replicas,
			ServiceName: db.Name,
			Selector:    &metav1.LabelSelector{MatchLabels: labels(db)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(db)},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:         "db",
					Image:        e.image + ":" + db.Spec.Version,
					Ports:        []corev1.ContainerPort{{Name: "db", ContainerPort: e.port}},
					Env:          []corev1.EnvVar{passwordOf(db)},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: e.data, SubPath: "data"}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{
							corev1.ResourceCPU:    resource.MustParse("100m"),
							corev1.ResourceMemory: resource.MustParse("256Mi"),
						},
						Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
					},
				}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec:       volume(db),
			}},
		},
	}
}

func backupVolume(db *Database) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metadata(db, "-backups"), Spec: volume(db)}
}

func backupJob(db *Database) *batchv1.CronJob {
	e := engines[db.Spec.Engine]
	return &batchv1.CronJob{
		ObjectMeta: metadata(db, "-backup"),
		Spec: batchv1.CronJobSpec{
			Schedule:          "0 3 * * *",
			ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyOnFailure,
					Containers: []corev1.Container{{
						Name:         "backup",
						Image:        e.image + ":" + db.Spec.Version,
						Command:      []string{"sh", "-c", e.dump + ` > "/backups/$(date +%F).sql"`},
						Env:          []corev1.EnvVar{passwordOf(db), {Name: "HOST", Value: db.Name}},
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
	return &corev1.Secret{ObjectMeta: metadata(db, ""), StringData: map[string]string{"password": text}}
}

func passwordOf(db *Database) corev1.EnvVar {
	return corev1.EnvVar{Name: engines[db.Spec.Engine].password, ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: db.Name},
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

func metadata(db *Database, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name + suffix, Labels: labels(db)}
}

func labels(db *Database) map[string]string {
	return map[string]string{"app.kubernetes.io/instance": db.Name, "app.kubernetes.io/managed-by": "database-operator"}
}
