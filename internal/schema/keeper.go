package schema

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// Keeping says whether objects of a kind keep a field.
type Keeping int

// The values of Keeping.
const (
	NotPublished Keeping = iota // the schema cannot be read now, or is not published yet
	NoSchemas                   // the API server shows no schemas
	Pruned                      // the API server drops the field, or refuses it
	Kept
)

// Keeper finds out whether the API server keeps the state of an operator in the status.
// It reads the schema of a kind again when it has changed. It is not safe for concurrent
// use.
type Keeper struct {
	API Source
	Key string // in the status

	known map[schema.GroupVersionResource]publishedResult
}

// publishedResult is the result for one state of a schema.
type publishedResult struct {
	url     string // of the document, with its hash
	keeping Keeping
	status  *Shape
}

// Keeping returns the results for the resources.
func (k *Keeper) Keeping(ctx context.Context, infos []kind.Info) map[schema.GroupVersionResource]Keeping {
	results := map[schema.GroupVersionResource]Keeping{}
	if len(infos) == 0 {
		return results
	}
	urls, err := k.index(ctx)
	versions := map[schema.GroupVersion][]kind.Info{}
	for _, info := range infos {
		results[info.GVR()] = unreadable(err)
		url, ok := urls[documentName(info.GVR().GroupVersion())]
		known, again := k.known[info.GVR()]
		switch {
		case !ok:
		case again && known.url == url && strings.Contains(url, "hash="):
			results[info.GVR()] = known.keeping
		default:
			versions[info.GVR().GroupVersion()] = append(versions[info.GVR().GroupVersion()], info)
		}
	}
	for gv, infos := range versions {
		name := documentName(gv)
		var d document
		err := k.API.Document(ctx, "/openapi/v3/"+name, func(r io.Reader) (err error) {
			d, err = readDocument(r, infos, usual())
			return err
		})
		for _, info := range infos {
			results[info.GVR()] = unreadable(err)
			raw, found := d.of(info)
			if err != nil || !found {
				continue
			}
			results[info.GVR()] = d.keepsState(raw, k.Key)
			if k.known == nil {
				k.known = map[schema.GroupVersionResource]publishedResult{}
			}
			k.known[info.GVR()] = publishedResult{urls[name], results[info.GVR()], d.status(raw)}
		}
	}
	for gvr, keeping := range results {
		if known, ok := k.known[gvr]; ok && keeping == NotPublished {
			results[gvr] = known.keeping // until the schema can be read again
		}
	}
	return results
}

// Status returns the shape of the status of a resource, as of the last call of
// [Keeper.Keeping]. nil means that it is not known.
func (k *Keeper) Status(gvr schema.GroupVersionResource) *Shape { return k.known[gvr].status }

// unreadable returns the result if there is no schema because of the error. nil means
// that it is not published yet.
func unreadable(err error) Keeping {
	_, large := errors.AsType[*tooLargeError](err)
	if large || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return NoSchemas
	}
	return NotPublished
}

// index returns the addresses of the documents, by name.
func (k *Keeper) index(ctx context.Context) (urls map[string]string, err error) {
	err = k.API.Document(ctx, "/openapi/v3", func(r io.Reader) error {
		l := usual()
		s := jsonvalue.NewStream(io.LimitReader(r, int64(l.document)), l.schema)
		urls = map[string]string{}
		return s.Object(func(name []byte) error {
			if string(name) != `"paths"` {
				return s.Skip()
			}
			return s.Object(func(name []byte) error {
				key := strings.Trim(string(name), `"`)
				raw, err := s.Value()
				if err != nil {
					return err
				}
				var entry struct {
					URL string `json:"serverRelativeURL"`
				}
				if err := json.Unmarshal(raw, &entry); err != nil {
					return err
				}
				urls[key] = entry.URL
				return nil
			})
		})
	})
	return urls, err
}

// documentName returns the name of the document with the schemas of a group version.
func documentName(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// keepsState returns whether the schema keeps the state of an operator under the key.
func (d document) keepsState(raw []byte, key string) Keeping {
	if d.keeps(raw, "", "status", key, "progress", "id", "field") &&
		d.keeps(raw, "string", "status", key, "last-handled-configuration") && d.keeps(raw, "string", "status", key, "moved") {
		return Kept
	}
	return Pruned
}

// keeps reports whether the API server keeps a value at the path. kind is the type of the
// value; "" means any. Only structural parts of the schema count: alternatives restrict
// values, but do not keep them.
func (d document) keeps(raw []byte, kind string, path ...string) bool {
	for _, key := range path {
		n, ok := d.resolve(raw)
		if !ok || n.Type != "" && n.Type != "object" {
			return false
		}
		if property, ok := n.Properties[key]; ok {
			raw = property
			continue
		}
		switch string(n.Additional) {
		case "", "null", "false":
			return n.Preserves
		case "true":
			return true
		}
		raw = n.Additional
	}
	n, ok := d.resolve(raw)
	return ok && (kind == "" || n.Type == "" || n.Type == kind)
}

// resolve decodes a schema and follows its references.
func (d document) resolve(raw []byte) (n node, ok bool) {
	for range maxNesting {
		n = node{}
		if json.Unmarshal(raw, &n) != nil {
			return n, false
		}
		switch {
		case n.Ref != "":
			raw = d[strings.TrimPrefix(n.Ref, "#/components/schemas/")]
		case len(n.AllOf) == 1 && n.Type == "" && len(n.Properties) == 0: // a reference with a default
			raw = n.AllOf[0]
		default:
			return n, true
		}
	}
	return n, false
}
