package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/permissions"
)

// Placeholders stand for values in the objects of a chart. They are replaced in the text,
// because Helm's expressions are no part of objects.
const (
	releaseNamespace = "gopf-release-namespace"
	servedNamespace  = "gopf-served-namespace"
	valueImage       = "gopf-value-image"
	valueReplicas    = 987654321
	valueResources   = "gopf-value-resources"
	valueArgs        = "gopf-value-args"
	valueSelector    = "gopf-value-nodeselector"
	valueTolerations = "gopf-value-tolerations"
	valueAccount     = "gopf-value-account"
	valuePods        = "gopf-value-podlabels"
)

// Chart returns a Helm chart of the same objects, by file name. The definitions are
// templates, so an upgrade of a release upgrades them. describeAgain returns the description
// of the operator, which the model changes. known are definitions that are maintained
// elsewhere.
func Chart(o Options, version string, describeAgain func() *describe.Operator, crds []map[string]any, known ...map[string]any) (map[string][]byte, error) {
	values := o
	o.Namespace, o.Image, o.Replicas = releaseNamespace, valueImage, valueReplicas
	o.Namespaces = nil
	wide := NewModel(o, describeAgain(), crds, known...)
	d := describeAgain()
	d.Scope.Namespaces = []string{servedNamespace}
	o.Namespaces = []string{servedNamespace}
	narrow := NewModel(o, d, crds, known...)

	protection, err := wide.Protection()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"Chart.yaml": encode(object{
			"apiVersion": "v2", "name": o.Name, "version": version, "appVersion": version, "type": "application",
			"description": "The operator " + o.Name + ".", "kubeVersion": ">=1.28.0-0",
		}),
		"values.yaml":             valuesOf(values),
		"values.schema.json":      valuesSchema(),
		"templates/crds.yaml":     chartCRDs(crds),
		"templates/operator.yaml": wide.chartWorkload(),
		"templates/rbac.yaml":     chartAccess(wide, narrow),
	}
	if len(protection) > 0 {
		files["templates/protection.yaml"] = expressions(encodeAll(protection))
	}
	if len(crds) == 0 {
		delete(files, "templates/crds.yaml")
	}
	return files, nil
}

func valuesOf(o Options) []byte {
	namespaces := list{}
	for _, n := range o.Namespaces {
		namespaces = append(namespaces, n)
	}
	return []byte("# The values of the chart. Their schema is in values.schema.json.\n" + string(encode(object{
		"image": o.Image, "replicas": o.Replicas, "namespaces": namespaces,
		"resources":    object{"requests": object{"cpu": "10m", "memory": "64Mi"}, "limits": object{"memory": o.Memory}},
		"goMemLimit":   o.goMemoryLimit(),
		"nodeSelector": object{}, "tolerations": list{}, "extraArgs": list{}, "podLabels": object{},
		"serviceAccount": object{"create": true, "annotations": object{}},
		"crds":           object{"install": true, "keep": true},
		"networkPolicy":  object{"enabled": true},
	})))
}

func valuesSchema() []byte {
	str, boolean := object{"type": "string"}, object{"type": "boolean"}
	texts := object{"type": "array", "items": str}
	closed := func(properties object) object {
		return object{"type": "object", "additionalProperties": false, "properties": properties}
	}
	schema := closed(object{
		"image": object{"type": "string", "minLength": 1}, "replicas": object{"type": "integer", "minimum": 0}, "namespaces": texts,
		"resources": object{"type": "object"}, "goMemLimit": str, "nodeSelector": object{"type": "object"}, "podLabels": object{"type": "object"},
		"tolerations": object{"type": "array"}, "extraArgs": texts,
		"serviceAccount": closed(object{"create": boolean, "annotations": object{"type": "object"}}),
		"crds":           closed(object{"install": boolean, "keep": boolean}),
		"networkPolicy":  closed(object{"enabled": boolean}),
		"global":         object{"type": "object"},
	})
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode the schema of the values: %v", err)) // it consists of JSON values
	}
	return append(text, '\n')
}

// chartCRDs returns the definitions as a template. Deleting a release keeps them and all
// their objects, unless crds.keep is false.
func chartCRDs(crds []map[string]any) []byte {
	var b bytes.Buffer
	b.WriteString("{{- if .Values.crds.install }}\n")
	for i, crd := range crds {
		if i > 0 {
			b.WriteString("---\n")
		}
		crd = maps.Clone(crd)
		meta := maps.Clone(crd["metadata"].(object))
		annotations, _ := meta["annotations"].(object)
		annotations = maps.Clone(annotations)
		if annotations == nil {
			annotations = object{}
		}
		annotations["helm.sh/resource-policy"] = "gopf-value-policy"
		meta["annotations"], crd["metadata"] = annotations, meta
		text := strings.ReplaceAll(string(encode(crd)), "{{", `{{ "{{" }}`)
		b.WriteString(strings.Replace(text, "    helm.sh/resource-policy: gopf-value-policy\n",
			"    gopf.dev/crds: {{ .Chart.Name }}\n    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n", 1))
	}
	b.WriteString("{{- end }}\n")
	return b.Bytes()
}

// chartWorkload returns the Deployment and its companions as a template.
func (m *Model) chartWorkload() []byte {
	var docs [][]byte
	for _, o := range m.Workload() {
		before, after := "", ""
		switch o["kind"] {
		case "Deployment":
			pod := o["spec"].(object)["template"].(object)
			pod["metadata"].(object)["labels"] = valuePods
			spec := pod["spec"].(object)
			spec["nodeSelector"], spec["tolerations"] = valueSelector, valueTolerations
			container := spec["containers"].(list)[0].(object)
			container["args"], container["resources"] = valueArgs, valueResources
			container["env"].(list)[0].(object)["value"] = "gopf-value-memory"
		case "PodDisruptionBudget":
			before, after = "{{- if gt (int .Values.replicas) 1 }}\n", "{{- end }}\n"
		case "NetworkPolicy":
			before, after = "{{- if .Values.networkPolicy.enabled }}\n", "{{- end }}\n"
		}
		docs = append(docs, slices.Concat([]byte(before), m.withArgs(encode(o)), []byte(after)))
	}
	return bytes.Join(docs, []byte("---\n"))
}

// withArgs replaces the placeholders, including that of the arguments.
func (m *Model) withArgs(text []byte) []byte {
	args := slices.Concat(m.Options.Args, m.flags)
	quoted := `"run"`
	for _, a := range args {
		quoted += fmt.Sprintf(" %q", a)
	}
	scope := `{{- $scope := list "--all-namespaces" }}{{- if .Values.namespaces }}{{- $scope = list }}{{- range .Values.namespaces }}` +
		`{{- $scope = append $scope (printf "--namespace=%s" .) }}{{- end }}{{- end }}` + "\n"
	if bytes.Contains(text, []byte(valueArgs)) {
		text = append([]byte(scope), text...)
		text = bytes.ReplaceAll(text, []byte(valueArgs), []byte("{{ toJson (concat (list "+quoted+") $scope .Values.extraArgs) }}"))
	}
	labels, err := json.Marshal(m.labels())
	if err != nil {
		panic(fmt.Sprintf("encode the labels: %v", err)) // they are strings
	}
	text = bytes.ReplaceAll(text, []byte(valuePods), fmt.Appendf(nil, "{{ toJson (merge (fromJson %q) .Values.podLabels) }}", labels))
	return expressions(text)
}

// expressions replaces placeholders by expressions of Helm.
func expressions(text []byte) []byte {
	for from, to := range map[string]string{
		releaseNamespace:          "{{ .Release.Namespace }}",
		valueImage:                "{{ toJson .Values.image }}",
		fmt.Sprint(valueReplicas): "{{ .Values.replicas }}",
		valueResources:            "{{ toJson .Values.resources }}",
		valueSelector:             "{{ toJson .Values.nodeSelector }}",
		valueTolerations:          "{{ toJson .Values.tolerations }}",
		valueAccount:              "{{ toJson .Values.serviceAccount.annotations }}",
		"gopf-value-memory":       "{{ toJson .Values.goMemLimit }}",
	} {
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
	}
	return text
}

// chartAccess returns the service account and the roles as a template: roles for the whole
// cluster, or for each of the served namespaces.
func chartAccess(wide, narrow *Model) []byte {
	var b bytes.Buffer
	account := object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": wide.meta(wide.Name)}
	account["metadata"].(object)["annotations"] = valueAccount
	b.WriteString("{{- if .Values.serviceAccount.create }}\n")
	b.Write(expressions(encode(account)))
	b.WriteString("{{- end }}\n{{- if .Values.namespaces }}\n")
	for _, role := range narrow.Permissions.Roles(narrow.Target) {
		narrow.chartRole(&b, role)
	}
	b.WriteString("{{- else }}\n")
	for _, role := range wide.Permissions.Roles(wide.Target) {
		wide.chartRole(&b, role)
	}
	b.WriteString("{{- end }}\n")
	return b.Bytes()
}

func (m *Model) chartRole(b *bytes.Buffer, role permissions.Role) {
	text := slices.Concat([]byte("---\n"), m.role(role))
	if role.Account == permissions.Operator {
		text = slices.Concat(text, []byte("---\n"), m.binding(role))
	}
	if role.Namespace != servedNamespace {
		b.Write(expressions(text))
		return
	}
	// In a range, "." is the served namespace.
	text = bytes.ReplaceAll(text, []byte(servedNamespace), []byte("{{ . }}"))
	text = bytes.ReplaceAll(text, []byte(releaseNamespace), []byte("{{ $.Release.Namespace }}"))
	fmt.Fprintf(b, "{{- range .Values.namespaces }}\n%s{{- end }}\n", text)
}
