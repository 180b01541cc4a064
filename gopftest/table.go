package gopftest

import (
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
)

// tableLayout defines how objects of a resource are shown in tables.
type tableLayout struct {
	columns []metav1.TableColumnDefinition
	extra   []*jsonpath.JSONPath // paths of the columns after the name
}

// newTableLayout returns the columns: the name, then those of the definition. Without
// the latter, the second column is the age.
func newTableLayout(extra []apiextensionsv1.CustomResourceColumnDefinition) *tableLayout {
	doc := metav1.ObjectMeta{}.SwaggerDoc()
	if len(extra) == 0 {
		extra = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: doc["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	l := &tableLayout{columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: doc["name"]},
	}}
	for _, c := range extra {
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		l.columns = append(l.columns, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			path = nil // leave the cell empty
		}
		l.extra = append(l.extra, path)
	}
	return l
}

// cells returns the row of an object.
func (l *tableLayout) cells(e *entry) []any {
	obj := e.object()
	cells := []any{e.key.name}
	for i, path := range l.extra {
		cells = append(cells, cell(obj.Object, path, l.columns[i+1].Type))
	}
	return cells
}

// cell returns the value of a column. nil means that there is no value of its type.
func cell(content map[string]any, path *jsonpath.JSONPath, kind string) any {
	if path == nil {
		return nil
	}
	found, err := path.FindResults(content)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return nil
	}
	value := found[0][0].Interface()
	switch kind {
	case "string":
		var text strings.Builder
		if path.PrintResults(&text, found[0][:1]) != nil {
			return nil
		}
		return text.String()
	case "date":
		text, _ := value.(string)
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "<invalid>"
		}
		return duration.HumanDuration(time.Since(t))
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch value.(type) {
		case int64, float64:
			return value
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	}
	return nil
}
