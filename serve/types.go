package serve

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/google/cel-go/cel"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/serve/expr"
	"gopf.dev/gopf/serve/spec"
)

// checkTypes checks the expressions of resources with a definition against its schema: a
// misspelled field of the object is a problem.
func checkTypes(op *spec.Operator, files fs.FS, folder string, problems *spec.Problems) {
	for i := range op.Resources {
		r := &op.Resources[i]
		if r.Definition == "" {
			continue
		}
		schema, err := readSchema(files, path.Join(folder, r.Definition), r.Resource)
		if err != "" {
			problems.Add(r.KeyPos(r.Pos, "definition"), "definition: %s", err)
			continue
		}
		if schema == nil {
			continue
		}
		for j := range r.Handlers {
			checkHandlerTypes(&r.Handlers[j], schema, files, folder, problems)
		}
	}
}

// readSchema returns the schema of the resource. nil means that the definition has none.
func readSchema(files fs.FS, file, resource string) (*structuralschema.Structural, string) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, "" // reported before
	}
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(text, &is); err != nil {
		return nil, fmt.Sprintf("%s is not a manifest: %v", file, err)
	}
	switch {
	case is.Kind == "":
		return nil, file + " is not a manifest: it has no kind; name the file of a CustomResourceDefinition"
	case is.Kind != "CustomResourceDefinition":
		return nil, fmt.Sprintf("%s is a %s of %s; name the file of a CustomResourceDefinition", file, is.Kind, cmp.Or(is.APIVersion, "no API version"))
	case is.APIVersion != apiextensionsv1.SchemeGroupVersion.String():
		return nil, fmt.Sprintf("%s has the apiVersion %q; use %s", file, is.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return nil, err.Error()
	}
	of, err := kind.Parse(resource)
	if err != nil {
		return nil, "" // reported before
	}
	info := kind.Info{Group: crd.Spec.Group, Plural: crd.Spec.Names.Plural, Kind: crd.Spec.Names.Kind, Singular: crd.Spec.Names.Singular}
	for _, v := range crd.Spec.Versions {
		info.Version = v.Name
		if !of.Matches(info) {
			continue
		}
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, ""
		}
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
			return nil, err.Error()
		}
		s, err := structuralschema.NewStructural(&internal)
		if err != nil {
			return nil, err.Error()
		}
		return s, ""
	}
	var versions []string
	for _, v := range crd.Spec.Versions {
		versions = append(versions, v.Name)
	}
	return nil, fmt.Sprintf("%s defines %s.%s with the versions [%s], and not the resource %s; name the file of its definition",
		file, crd.Spec.Names.Plural, crd.Spec.Group, strings.Join(versions, ", "), resource)
}

func checkHandlerTypes(h *spec.Handler, schema *structuralschema.Structural, files fs.FS, folder string, problems *spec.Problems) {
	declared := model.SchemaDeclType(schema, true)
	if declared == nil {
		return
	}
	declared = declared.MaybeAssignTypeName("__schema") // the name of no variable: types hide their fields
	provider := apiservercel.NewDeclTypeProvider(declared)
	env, err := expr.NewEnv([]string{"old", "diff", "reason", "event", "field", "retry", "review", "memo", "key", "children"},
		cel.Variable("object", declared.CelType()), func(e *cel.Env) (*cel.Env, error) {
			opts, err := provider.EnvOptions(e.CELTypeProvider())
			if err != nil {
				return nil, err
			}
			for _, o := range opts {
				if e, err = o(e); err != nil {
					return nil, err
				}
			}
			return e, nil
		})
	if err != nil {
		problems.Add(h.Pos, "schema: %v", err)
		return
	}
	check := func(at spec.Pos, what string, err error) {
		if err != nil {
			problems.Add(at, "%s: %v", what, err)
		}
	}
	condition := func(at spec.Pos, what, text string) {
		if text != "" {
			_, err := env.Condition(text)
			check(at, what, err)
		}
	}
	condition(h.Where.KeyPos(h.Where.Pos, "cel"), "where.cel", h.Where.CEL)
	// The texts are those of build, so a mistake that both find is reported once.
	if h.CEL != "" {
		compile := env.Compile
		if h.Validate {
			compile = env.Condition
		}
		_, err := compile(h.CEL)
		check(h.Pos, fmt.Sprintf("handler %q", h.ID), err)
	}
	if h.Message != "" {
		_, err := env.Text(h.Message)
		check(h.Pos, fmt.Sprintf("handler %q: message", h.ID), err)
	}
	s := &set{files: files, folder: folder, problems: &spec.Problems{}}
	template := func(what string, t spec.Node) {
		if value, ok := s.value(t.Pos, h.ID, t); ok {
			_, err := env.Template(value)
			check(t.Pos, "template of "+what, err)
		}
	}
	if h.Template.Present() {
		template(fmt.Sprintf("handler %q", h.ID), h.Template)
	}
	for _, c := range h.Children {
		condition(c.Pos, fmt.Sprintf("includeWhen of %q", c.ID), c.IncludeWhen)
		template(fmt.Sprintf("%q", c.ID), c.Template)
	}
	if len(h.Status) > 0 {
		_, err := env.Template(h.Status)
		check(h.Pos, fmt.Sprintf("status of handler %q", h.ID), err)
	}
}
