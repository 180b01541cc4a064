package childwatch

import (
	"errors"
	"strings"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/internal/terminal"
	"gopf.dev/gopf/kind"
)

// Read returns the child in a body that has managedFields. It decodes only the parts of the
// child that decisions need: at a start, all children are read, and few have changed. It
// takes a few milliseconds at most, because the children of all owners wait for it.
func (s *Store) Read(info kind.Info, body *object.Body) (*Child, error) {
	h := head{}
	if err := h.read(body); err != nil {
		return nil, err
	}
	plain := body.WithoutManagedFields().WithType(info.APIVersion(), info.Kind)
	c := &Child{
		Key: children.Key{APIVersion: info.APIVersion(), Kind: info.Kind, Namespace: body.Namespace, Name: body.Name},
		UID: body.UID, Deleting: body.Deleting, Finalized: h.finalized,
		Controller: h.controller, Owner: h.controller, Digest: h.digest, Labelled: h.label == s.Manager,
		Readiness: readinessOf(info, plain, h.generation),
	}
	c.Readiness.Message = terminal.Cut(c.Readiness.Message, longestText)
	c.Stamp, c.Applied = children.Stamp(h.managed, s.Manager)
	if info.Group != "" || info.Kind != "Secret" { // the hash is stored on the owner, which has other readers
		c.Content = children.Content(h.managed, s.Manager, body.Raw())
	}
	if c.Owner == "" {
		c.Owner, c.Orphan = ownerUID(h.owner)
	}
	if plain.Size() >= hugeChild {
		c.packed, c.hollow = s.packer(info).Identify(plain), true
	} else {
		c.packed = s.packer(info).PackWithout(plain, c.Owner)
	}
	return c, nil
}

// OwnerOf returns the uid of the owner of a child: of its controlling owner, or of the one in
// the annotation. Empty means that the object is no child, or that it does not have the label
// of the operator.
func OwnerOf(body *object.Body, operator string) string {
	h := head{}
	if h.read(body) != nil || h.label != operator {
		return ""
	}
	if h.controller != "" {
		return h.controller
	}
	uid, _ := ownerUID(h.owner)
	return uid
}

// readinessOf returns the readiness of a child without decoding all of it.
func readinessOf(info kind.Info, body *object.Body, generation any) readiness.Verdict {
	ruled := readiness.HasRule(info.APIVersion(), info.Kind)
	if !ruled && !body.HasStatus() && !body.Deleting {
		return readiness.Of(nil) // as for a ConfigMap: nothing says that it is not ready
	}
	fields := map[string]any{}
	if text, _ := body.Status(); len(text) >= hugeStatus {
		status, ok := partsOf(text)
		if !ok {
			return readiness.Verdict{State: readiness.InProgress, Message: "The status is too large to be read."}
		}
		if ruled {
			fields = body.Members(func(name string) bool { return name == "spec" })
		}
		fields["status"] = status
	} else if ruled || body.HasStatus() {
		fields = body.Members(func(name string) bool { return name == "status" || ruled && name == "spec" })
	}
	metadata := map[string]any{"generation": generation}
	if body.Deleting {
		metadata["deletionTimestamp"] = "set"
	}
	fields["apiVersion"], fields["kind"], fields["metadata"] = info.APIVersion(), info.Kind, metadata
	return readiness.Of(fields)
}

// partsOf returns the small parts of a large status. ok is false if they are too many, or if
// the conditions are no small part.
func partsOf(text []byte) (parts map[string]any, ok bool) {
	w, small := jsonvalue.NewWalk(text), []byte("{")
	if !w.Take('{') {
		return nil, false
	}
	for !w.Take('}') {
		name, value := w.Value(), w.Value()
		switch {
		case len(value) == 0:
			return nil, false
		case len(name)+len(value) <= smallPart:
			if len(small) > 1 {
				small = append(small, ',')
			}
			small = append(append(append(small, name...), ':'), value...)
		case string(name) == `"conditions"`:
			return nil, false
		}
		if len(small) > smallParts {
			return nil, false
		}
	}
	parts, err := jsonvalue.Object(append(small, '}'))
	return parts, err == nil
}

// head has the metadata of a child that decisions need.
type head struct {
	digest, owner string // of the annotations
	label         string // of the operator
	finalized     bool
	controller    string // the uid of the controlling owner
	generation    any    // of the specification; nil means that it is not known
	managed       []children.ManagedFields
}

func (h *head) read(body *object.Body) error {
	text, ok := body.Metadata()
	if !ok {
		return errors.New("the object has no metadata")
	}
	r := &reader{jsonvalue.Read(text), text}
	defer r.Close()
	return r.object(func(name []byte) (err error) {
		switch string(name) {
		case "annotations":
			return r.object(func(name []byte) error { return h.annotation(r, name) })
		case "finalizers":
			return r.list(func() error {
				h.finalized = true
				return r.SkipValue()
			})
		case "generation":
			h.generation, err = r.Value()
			return err
		case "labels":
			return r.object(func(name []byte) error {
				if string(name) == Label {
					return r.text(&h.label)
				}
				return r.SkipValue()
			})
		case "managedFields":
			return r.list(func() error { return h.entry(r) })
		case "ownerReferences":
			return r.list(func() error { return h.reference(r) })
		}
		return r.SkipValue()
	})
}

func (h *head) annotation(r *reader, name []byte) error {
	switch string(name) {
	case DigestAnnotation:
		return r.text(&h.digest)
	case OwnerAnnotation:
		return r.text(&h.owner)
	}
	return r.SkipValue()
}

func (h *head) reference(r *reader) error {
	var uid string
	controls := false
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "uid":
			return r.text(&uid)
		case "controller":
			controls = r.PeekKind() == 't'
		}
		return r.SkipValue()
	})
	if controls {
		h.controller = uid
	}
	return err
}

func (h *head) entry(r *reader) error {
	var e children.ManagedFields
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "manager":
			return r.text(&e.Manager)
		case "operation":
			return r.text(&e.Operation)
		case "time":
			return r.text(&e.Time)
		case "subresource":
			return r.text(&e.Subresource)
		case "fieldsV1":
			value, err := r.ReadValue()
			end := int(r.InputOffset())
			e.FieldsV1 = r.source[end-len(value) : end]
			return err
		}
		return r.SkipValue()
	})
	h.managed = append(h.managed, e)
	return err
}

// reader reads metadata. Values of other types than expected are skipped.
type reader struct {
	*jsonvalue.Reader
	source []byte
}

func (r *reader) object(fn func(name []byte) error) error {
	if r.PeekKind() != '{' {
		return r.SkipValue()
	}
	return r.Each(fn)
}

func (r *reader) list(fn func() error) error {
	if r.PeekKind() != '[' {
		return r.SkipValue()
	}
	if _, err := r.ReadToken(); err != nil {
		return err
	}
	for r.PeekKind() != ']' {
		if err := fn(); err != nil {
			return err
		}
	}
	_, err := r.ReadToken()
	return err
}

func (r *reader) text(into *string) error {
	if r.PeekKind() != '"' {
		return r.SkipValue()
	}
	token, err := r.ReadToken()
	if err == nil {
		if *into = token.String(); len(*into) > longestText {
			*into = strings.Clone((*into)[:longestText])
		}
	}
	return err
}
