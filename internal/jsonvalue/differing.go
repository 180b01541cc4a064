package jsonvalue

import "bytes"

// Differing decodes two texts without the fields that are equal in both, byte by byte, in
// their objects of the first levels. A comparison of the results finds the same
// differences as one of the whole values, and most of the decoding is saved.
func Differing(old, new []byte, levels int) (before, after any, err error) {
	if levels == 0 || !isObject(old) || !isObject(new) {
		if before, err = Decode(old); err == nil {
			after, err = Decode(new)
		}
		return before, after, err
	}
	was, err := members(old)
	if err != nil {
		return nil, nil, err
	}
	is, err := members(new)
	if err != nil {
		return nil, nil, err
	}
	had, has := map[string]any{}, map[string]any{}
	for name, raw := range was {
		other, both := is[name]
		switch {
		case !both:
			had[name], err = Decode(raw)
		case !bytes.Equal(raw, other):
			had[name], has[name], err = Differing(raw, other, levels-1)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for name, raw := range is {
		if _, both := was[name]; both {
			continue
		}
		if has[name], err = Decode(raw); err != nil {
			return nil, nil, err
		}
	}
	return had, has, nil
}

func isObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// members returns the fields of an object, not decoded.
func members(text []byte) (map[string][]byte, error) {
	r := Read(text)
	defer r.Close()
	fields := make(map[string][]byte, 8)
	err := r.Each(func(name []byte) error {
		key := r.name(name) // reading the value invalidates the name
		value, err := r.ReadValue()
		end := int(r.InputOffset())
		fields[key] = text[end-len(value) : end] // the value itself is valid only until the next one is read
		return err
	})
	return fields, err
}
