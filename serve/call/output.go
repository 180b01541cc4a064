package call

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/suggest"
)

// ParseOutput reads the output of a handler. Empty output means success. An unknown key is
// an error, because it may be a typing mistake. So is an output with too many values: decoded,
// they take many times the memory of the text.
func ParseOutput(text []byte) (Output, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return Output{}, nil
	}
	if err := jsonvalue.Check(text, len(text)); err != nil {
		return Output{}, fmt.Errorf("the output is too large: %w", err)
	}
	fields, err := jsonvalue.Object(text)
	if err != nil {
		return Output{}, fmt.Errorf("the output is not a JSON object: %w; it begins with %q", err, cut(string(text), 60))
	}
	return OutputOf(fields)
}

// OutputOf returns the output with the fields of a decoded JSON object. It shares their values:
// texts of objects may be long.
func OutputOf(fields map[string]any) (out Output, err error) {
	for key, value := range fields {
		if !slices.Contains(outputKeys, key) {
			return Output{}, fmt.Errorf("the output has the unknown key %q%s", key, suggest.DidYouMean(key, outputKeys, "%q"))
		}
		if value == nil && key != "memo" { // null removes the memo
			continue
		}
		if err := out.set(key, value); err != nil {
			return Output{}, fmt.Errorf("the output does not fit the contract: %s: %w", key, err)
		}
	}
	outcomes := 0
	for _, given := range []bool{out.Wait != nil, out.Retry != nil, out.Permanent != nil, out.Deny != nil} {
		if given {
			outcomes++
		}
	}
	if outcomes > 1 {
		return Output{}, errors.New("the output has more than one of wait, retry, permanent and deny")
	}
	return out, nil
}

// outputKeys are the keys of Output.
var outputKeys = []string{
	"patch", "status", "labels", "annotations", "result", "children", "apply", "delete", "events", "warnings", "memo",
	"wait", "retry", "permanent", "deny",
}

// set sets the field of a key.
func (o *Output) set(key string, value any) (err error) {
	switch key {
	case "patch":
		o.Patch, err = object(value)
	case "status":
		o.Status, err = object(value)
	case "labels":
		o.Labels, err = texts(value)
	case "annotations":
		o.Annotations, err = texts(value)
	case "result":
		o.Result = value
	case "children":
		o.Children, err = each(value, object)
	case "apply":
		o.Apply, err = each(value, object)
	case "delete":
		o.Delete, err = each(value, object)
	case "events":
		o.Events, err = each(value, event)
	case "warnings":
		o.Warnings, err = each(value, text)
	case "memo":
		o.Memo, err = jsonvalue.Encode(value)
	case "wait":
		o.Wait, err = delay(value)
	case "retry":
		o.Retry, err = delay(value)
	case "permanent":
		o.Permanent, err = pointer(value)
	case "deny":
		o.Deny, err = pointer(value)
	}
	return err
}

// unfit is the error about a value of another type.
func unfit(value any, want string) error {
	shown, _ := jsonvalue.Head(value, 60)
	return fmt.Errorf("%s is not %s", cut(string(shown), 60), want)
}

func object(value any) (map[string]any, error) {
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, unfit(value, "an object")
	}
	return fields, nil
}

func text(value any) (string, error) {
	s, ok := value.(string)
	if !ok && value != nil {
		return "", unfit(value, "a text")
	}
	return s, nil
}

func pointer(value any) (*string, error) {
	s, err := text(value)
	return &s, err
}

// texts returns a map of texts. null stays null: it removes the key from the object.
func texts(value any) (map[string]*string, error) {
	fields, err := object(value)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*string, len(fields))
	for key, value := range fields {
		if all[key] = nil; value == nil {
			continue
		}
		if all[key], err = pointer(value); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return all, nil
}

func each[T any](value any, one func(any) (T, error)) ([]T, error) {
	items, ok := value.([]any)
	if !ok {
		return nil, unfit(value, "a list")
	}
	list := make([]T, len(items))
	for i, item := range items {
		var err error
		if list[i], err = one(item); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return list, nil
}

func event(value any) (e Event, err error) {
	err = members(value, map[string]*string{"type": &e.Type, "reason": &e.Reason, "message": &e.Message})
	return e, err
}

func delay(value any) (*Delay, error) {
	d := &Delay{}
	if err := members(value, map[string]*string{"message": &d.Message, "error": &d.Error}); err != nil {
		return nil, err
	}
	if after := value.(map[string]any)["after"]; after != nil { // members has checked the type
		encoded, err := jsonvalue.Encode(after)
		if err == nil {
			err = d.After.UnmarshalJSON(encoded)
		}
		if err != nil {
			return nil, fmt.Errorf("after: %w", err)
		}
	}
	return d, nil
}

// members sets the texts with these keys of an object.
func members(value any, into map[string]*string) error {
	fields, ok := value.(map[string]any)
	if !ok {
		return unfit(value, "an object")
	}
	for key, target := range into {
		s, err := text(fields[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*target = s
	}
	return nil
}
