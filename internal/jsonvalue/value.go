package jsonvalue

import "encoding/json"

// Value decodes the next value. Numbers keep their values: see [Number]. Numbers beyond
// the range of float64 become a [json.Number].
func (r *Reader) Value() (any, error) {
	switch r.PeekKind() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '0':
		return r.number()
	}
	token, err := r.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

func (r *Reader) object() (map[string]any, error) {
	fields := map[string]any{}
	err := r.Each(func(name []byte) error { return r.Field(fields, name) })
	return fields, err
}

// Field decodes the next value into a map, under the name from [Reader.Each].
func (r *Reader) Field(into map[string]any, name []byte) error {
	key := r.name(name) // reading the value invalidates the name
	v, err := r.Value()
	into[key] = v
	return err
}

func (r *Reader) array() ([]any, error) {
	if _, err := r.ReadToken(); err != nil {
		return nil, err
	}
	list := []any{}
	for r.PeekKind() != ']' {
		v, err := r.Value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.ReadToken()
	return list, err
}

func (r *Reader) number() (any, error) {
	raw, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	n, err := Number(string(raw))
	if err != nil {
		// The syntax is valid, and one number must not hide the other values.
		return json.Number(raw), nil //nolint:nilerr // see above
	}
	return n, nil
}

// Cached reads a string of which most objects have the same, such as their kind. ok is false
// for other values, which are skipped.
func (r *Reader) Cached() (text string, ok bool, err error) {
	kind := r.PeekKind()
	value, err := r.ReadValue()
	if kind != '"' || err != nil {
		return "", false, err
	}
	return r.name(Unquoted(value)), true, nil
}

// name returns the name of a field as a string. Objects of one kind have the same
// fields, so most names are cached.
func (r *Reader) name(raw []byte) string {
	n := len(raw)
	if n == 0 || n > 32 { //mutate:skip long names only take more room
		return string(raw)
	}
	known := &r.names[(n*31+int(raw[0])*7+int(raw[n/2])*3+int(raw[n-1]))%len(r.names)] //mutate:skip any hash will do
	if *known != string(raw) {
		*known = string(raw)
	}
	return *known
}
