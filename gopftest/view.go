package gopftest

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// view is the form in which a client requests objects: complete, metadata only, or as
// rows of a table.
type view struct {
	scope   *scope
	as      string // empty, PartialObjectMetadata, PartialObjectMetadataList or Table
	version string // API version of the form
	include metav1.IncludeObjectPolicy
	headers bool // the column definitions are still to be sent
}

func (v *view) apiVersion() string {
	return schema.GroupVersion{Group: metav1.GroupName, Version: v.version}.String()
}

// object renders one object.
func (v *view) object(e *entry) []byte {
	switch v.as {
	case "PartialObjectMetadata":
		return encode(v.partial(e))
	case "Table":
		return encode(v.table(metav1.ListMeta{ResourceVersion: fmt.Sprint(e.version)}, e))
	default:
		return e.in(v.scope.version.name, v.scope.resource)
	}
}

// list renders a page.
func (v *view) list(p *page) []byte {
	switch v.as {
	case "PartialObjectMetadataList":
		items := []any{}
		for _, e := range p.items {
			items = append(items, v.partial(e))
		}
		return encode(map[string]any{"kind": v.as, "apiVersion": v.apiVersion(), "metadata": p.ListMeta, "items": items})
	case "Table":
		return encode(v.table(p.ListMeta, p.items...))
	}
	// The stored bodies are joined as they are, which avoids encoding them again.
	var buf bytes.Buffer
	meta := mustUnstructured(&p.ListMeta).Object
	if v.scope.resource.custom() {
		meta["continue"] = p.Continue // the real API server includes it even if it is empty
	}
	head := encode(map[string]any{"kind": v.scope.resource.Kind.Kind + "List", "apiVersion": v.scope.apiVersion(), "metadata": meta})
	buf.Write(head[:len(head)-1])
	buf.WriteString(`,"items":[`)
	for i, e := range p.items {
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.Write(v.object(e))
	}
	buf.WriteString("]}")
	return buf.Bytes()
}

// bookmark renders an object with nothing but a resource version.
func (v *view) bookmark(version int64, initialEventsEnd bool) []byte {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(v.scope.apiVersion())
	obj.SetKind(v.scope.resource.Kind.Kind)
	obj.SetResourceVersion(fmt.Sprint(version))
	if initialEventsEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	e := newEntry(obj, version)
	switch {
	case v.as == "Table" && initialEventsEnd && v.include == metav1.IncludeNone:
		// The annotation must reach the client even if it wants no objects.
		v := *v
		v.include = metav1.IncludeMetadata
		return v.object(e)
	case v.as == "":
		return e.raw
	default:
		return v.object(e)
	}
}

func (v *view) partial(e *entry) map[string]any {
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": v.apiVersion(), "metadata": e.object().Object["metadata"]}
}

func (v *view) table(meta metav1.ListMeta, items ...*entry) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: v.apiVersion()}, ListMeta: meta, Rows: []metav1.TableRow{}}
	if v.headers {
		t.ColumnDefinitions = v.scope.version.table.columns
	}
	for _, e := range items {
		row := metav1.TableRow{Cells: v.scope.version.table.cells(e)}
		switch v.include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object = runtime.RawExtension{Raw: e.in(v.scope.version.name, v.scope.resource)}
		default:
			row.Object = runtime.RawExtension{Raw: encode(v.partial(e))}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
