package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// Limits of documents. Those of Kubernetes itself have up to 3 MiB. A custom resource
// definition has at most 1.5 MiB.
const (
	maxDocument = 32 << 20 // bytes of a document
	maxSchemas  = 16 << 20 // bytes of the schemas that are kept while it is used
	maxSchema   = 4 << 20  // bytes of one schema
)

// document has the schemas of one version of an API group, encoded, by name.
type document map[string][]byte

// readDocument reads an OpenAPI v3 document. It keeps only the schemas, which are a
// third of it. Schemas that are too long are left out.
func readDocument(r io.Reader) (document, error) {
	d, size := document{}, 0
	s := jsonvalue.NewStream(io.LimitReader(r, maxDocument), maxSchema)
	skip := func([]byte) error { return s.Skip() }
	err := s.Object(func(name []byte) error {
		switch string(name) {
		case `"paths"`:
			return s.Object(skip) // one by one, because all of them are long
		case `"components"`:
			return s.Object(func(name []byte) error {
				if string(name) != `"schemas"` {
					return s.Skip()
				}
				return s.Object(func(name []byte) error {
					key := string(bytes.Trim(name, `"`))
					raw, err := s.Value()
					if _, long := errors.AsType[*jsonvalue.TooLongError](err); long {
						return nil
					}
					if size += len(raw); size > maxSchemas {
						return fmt.Errorf("the schemas have more than %d bytes", maxSchemas)
					}
					d[key] = bytes.Clone(raw)
					return err
				})
			})
		}
		return s.Skip()
	})
	return d, err
}

// readIndex reads the list of documents at /openapi/v3, and reports whether it has the
// document for the version of a group.
func readIndex(r io.Reader, wanted string) (found bool, err error) {
	s := jsonvalue.NewStream(io.LimitReader(r, maxDocument), maxSchema)
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
		if !bytes.Contains(raw, []byte(`"x-kubernetes-group-version-kind"`)) {
			continue
		}
		var s struct {
			Kinds []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
		}
		if json.Unmarshal(raw, &s) != nil || len(s.Kinds) != 1 { // several kinds share types of options
			continue
		}
		if k := s.Kinds[0]; k.Group == info.Group && k.Version == info.Version && k.Kind == info.Kind {
			return raw, true
		}
	}
	return nil, false
}
