package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// limits are the limits of documents, in bytes.
type limits struct {
	document int // of a document, most of which is skipped
	schemas  int // of all schemas that are kept while the document is used
	schema   int // of one schema
}

// usual returns the limits for documents of API servers. Documents of Kubernetes itself
// have up to 3 MiB. A custom resource definition has at most 1.5 MiB.
func usual() limits { return limits{document: 64 << 20, schemas: 8 << 20, schema: 4 << 20} }

// tooLargeError is the error for a document that exceeds the limits. Reading it again would
// not help.
type tooLargeError struct{ what string }

func (e *tooLargeError) Error() string { return "the document has too many " + e.what }

// document has the schemas of one version of an API group, encoded, by name.
type document map[string][]byte

// readDocument reads an OpenAPI v3 document. It keeps the schemas of the wanted kinds,
// and those that belong to no kind, because the former refer to them. A schema that is
// too long is left out.
func readDocument(r io.Reader, wanted []kind.Info, l limits) (document, error) {
	d, size := document{}, 0
	source := &io.LimitedReader{R: r, N: int64(l.document)}
	s := jsonvalue.NewStream(source, l.schema)
	keep := func(name []byte) error {
		key := string(bytes.Trim(name, `"`))
		raw, err := s.Value()
		if _, long := errors.AsType[*jsonvalue.TooLongError](err); long {
			return nil
		}
		if err != nil || other(raw, wanted) {
			return err
		}
		if size += len(raw); size > l.schemas {
			return &tooLargeError{"schemas"}
		}
		d[key] = bytes.Clone(raw)
		return nil
	}
	err := s.Object(func(name []byte) error {
		switch string(name) {
		case `"paths"`:
			return s.Object(func([]byte) error { return s.Skip() }) // one by one, because all of them are long
		case `"components"`:
			return s.Object(func(name []byte) error {
				if string(name) != `"schemas"` {
					return s.Skip()
				}
				return s.Object(keep)
			})
		}
		return s.Skip()
	})
	if err != nil && source.N == 0 {
		err = &tooLargeError{"bytes"}
	}
	return d, err
}

// other reports whether the schema belongs to kinds that are not wanted.
func other(raw []byte, wanted []kind.Info) bool {
	kinds, ok := kindsOf(raw)
	return ok && !slices.ContainsFunc(wanted, func(info kind.Info) bool {
		return slices.Contains(kinds, info.GVR().GroupVersion().WithKind(info.Kind))
	})
}

// kindsOf returns the kinds that a schema belongs to. ok is false if it belongs to none.
func kindsOf(raw []byte) (kinds []schema.GroupVersionKind, ok bool) {
	if !bytes.Contains(raw, []byte(`"x-kubernetes-group-version-kind"`)) {
		return nil, false
	}
	var s struct {
		Kinds []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil, false
	}
	for _, k := range s.Kinds {
		kinds = append(kinds, schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind})
	}
	return kinds, len(kinds) > 0
}

// readIndex reads the list of documents at /openapi/v3, and reports whether it has the
// document for the version of a group.
func readIndex(r io.Reader, wanted string) (found bool, err error) {
	l := usual()
	s := jsonvalue.NewStream(io.LimitReader(r, int64(l.document)), l.schema)
	err = s.Object(func(name []byte) error {
		if string(name) != `"paths"` {
			return s.Skip()
		}
		return s.Object(func(name []byte) error {
			found = found || string(name) == `"`+wanted+`"`
			return s.Skip()
		})
	})
	return found, err
}

// of returns the schema of a kind.
func (d document) of(info kind.Info) (raw []byte, found bool) {
	for _, raw := range d {
		if kinds, ok := kindsOf(raw); ok && len(kinds) == 1 && kinds[0] == info.GVR().GroupVersion().WithKind(info.Kind) { // several kinds share options
			return raw, true
		}
	}
	return nil, false
}
