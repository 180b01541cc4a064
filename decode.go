package gopf

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// isUntyped reports whether T is [Unstructured].
func isUntyped[T Object]() bool {
	var obj T
	_, ok := any(obj).(Unstructured)
	return ok
}

// typeOf returns the type that JSON is decoded into for a handler; nil means maps.
func typeOf[T Object]() reflect.Type {
	if isUntyped[T]() {
		return nil
	}
	return reflect.TypeFor[T]()
}

// untyped converts decoded JSON to T, which must be [Unstructured]. The result owns the
// map.
func untyped[T Object](fields map[string]any) T {
	return any(&unstructured.Unstructured{Object: fields}).(T)
}

// decode decodes the object into a new T.
func decode[T Object](b *object.Body) (T, error) {
	if isUntyped[T]() {
		fields, err := b.Fields()
		return untyped[T](fields), err
	}
	obj := newObject[T]()
	if err := b.Decode(obj); err != nil {
		return obj, fmt.Errorf("decode the object into %T: %w", obj, err)
	}
	return obj, nil
}

// decodeOld decodes a last handled essence, with the identity of the current object.
// Fields that do not fit T are zero: an old value cannot be corrected, and must not
// block the handler. All are, if an old value would take much more memory than its JSON and
// than the current object: clients can forge it.
func decodeOld[T Object](essence map[string]any, b *object.Body) T {
	var obj T
	if isUntyped[T]() {
		obj = untyped[T](copied(essence))
	} else {
		obj = newObject[T]()
		of := footprint.Of(reflect.TypeFor[T]())
		if raw, err := storage.EncodeEssence(essence); err == nil && essence != nil && !of.Inflates([]byte(raw), b.MemoryAs(of, footprint.Small)) {
			_ = object.Decode([]byte(raw), obj)
		}
	}
	identify(obj, b)
	return obj
}

// decodeStored decodes an object as it was before a request. As in [decodeOld], fields
// that do not fit T are zero.
func decodeStored[T Object](b *object.Body) T {
	if isUntyped[T]() {
		return decodeOld[T](b.Map(), b)
	}
	obj := newObject[T]()
	_ = b.Decode(obj) // see above
	identify(obj, b)
	return obj
}

// emptyObject returns an empty T.
func emptyObject[T Object]() T {
	if isUntyped[T]() {
		return untyped[T](map[string]any{})
	}
	return newObject[T]()
}

func copied(fields map[string]any) map[string]any { return jsonvalue.Clone(fields).(map[string]any) }

func identify[T Object](obj T, b *object.Body) {
	obj.SetNamespace(b.Namespace)
	obj.SetName(b.Name)
	obj.SetUID(types.UID(b.UID))
}

func newObject[T Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
}

// editAs runs typed edits, functions of T, on decoded JSON. It transfers only the difference that they
// make to the JSON of T. Fields that T lacks are not lost, in list items as well.
func editAs[T Object](fields map[string]any, edits []any) {
	if isUntyped[T]() {
		u, size := untyped[T](fields), jsonvalue.TextSize(fields, jsonvalue.MaxObject)
		for _, edit := range edits {
			ensureMaps(u)
			edit.(func(T))(u)
		}
		bounded(fields, size)
		dropEmptyMaps(fields)
		return
	}
	obj := newObject[T]()
	raw, err := jsonvalue.Encode(fields)
	if err == nil {
		err = fits(raw, footprint.Of(reflect.TypeFor[T]()))
	}
	if err == nil {
		err = object.Decode(raw, obj)
	}
	if err != nil {
		panic(fmt.Errorf("decode the object into %T for an edit: %w", obj, err))
	}
	was := encoded(obj)
	for _, edit := range edits {
		ensureMaps(obj)
		edit.(func(T))(obj)
	}
	bounded(obj, len(raw))
	changes, err := jsonvalue.Merging(was, encoded(obj), func(path []string, old, new []any) any {
		raw, _ := jsonvalue.Lookup(fields, path...)
		return patch.Rebase(raw, old, new)
	})
	if err != nil {
		panic(fmt.Errorf("read the edited %T: %w", obj, err))
	}
	patch.Apply(fields, changes)
}

// bounded panics if the texts of an object have become far longer than they were: it may contain the
// same text many times.
func bounded(obj any, size int) {
	if limit := size + maxTexts; jsonvalue.TextSize(obj, limit) > limit {
		panic(fmt.Errorf("the edit adds more than %d MiB, and API servers accept no larger request", maxTexts>>20))
	}
}

// fits returns an error if the JSON would take too much memory as the type, or as its JSON.
func fits(raw []byte, of *footprint.Type) error {
	if of.Expands(raw) {
		return errors.New("it would become more than four times as long, because many of its lists have null or empty items")
	}
	return of.Check(raw)
}

// statusChanges returns a merge patch that turns the status of the object into v, as far
// as the type of v knows it.
func statusChanges(b *object.Body, v any) map[string]any {
	t := reflect.TypeOf(v)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		panic(fmt.Errorf("set the status: %T is no struct; use MergeStatus for maps", v))
	}
	status, _ := b.Lookup("status")
	read, _ := status.(map[string]any)
	known := reflect.New(t).Interface()
	for key, value := range read { // one by one: fields that do not fit are replaced
		raw, err := jsonvalue.Encode(map[string]any{key: value})
		if of := footprint.Of(t); err == nil && !of.Inflates(raw, 0) && !of.Expands(raw) {
			_ = object.Decode(raw, known)
		}
	}
	before, _ := common(encode(known), read).(map[string]any)
	return patch.Between(before, encode(v))
}

// common returns v without the keys that other lacks.
func common(v, other any) any {
	fields, ok := v.(map[string]any)
	others, both := other.(map[string]any)
	if !ok {
		return v
	}
	for key, value := range fields {
		if in, found := others[key]; both && found {
			fields[key] = common(value, in)
		} else {
			delete(fields, key)
		}
	}
	return fields
}

// dropEmptyMaps removes empty labels and annotations that ensureMaps added. To the API
// server, empty and absent are the same.
func dropEmptyMaps(fields map[string]any) {
	metadata, _ := fields["metadata"].(map[string]any)
	for _, key := range []string{"labels", "annotations"} {
		if values, ok := metadata[key].(map[string]any); ok && len(values) == 0 {
			delete(metadata, key)
		}
	}
}

// encode returns the JSON of a typed object, decoded into maps.
func encode(obj any) map[string]any {
	fields, err := jsonvalue.Decode(encoded(obj))
	if err != nil {
		panic(fmt.Errorf("read the edited %T: %w", obj, err))
	}
	return fields.(map[string]any)
}

// encoded returns the JSON of a typed object. It panics if that is no JSON object.
func encoded(obj any) []byte {
	text, err := jsonvalue.Marshal(obj)
	if err == nil && !bytes.HasPrefix(text, []byte("{")) {
		err = errors.New("it is no JSON object")
	}
	if err != nil {
		panic(fmt.Errorf("encode the edited %T: %w", obj, err))
	}
	return text
}

// convert converts decoded JSON to V. ok is false if that would lose data, or take much more time
// or memory than the JSON does. In values of type any, integers are int64 and other numbers float64.
func convert[V any](found any) (V, bool) {
	var v V
	raw, err := jsonvalue.Encode(found)
	of := footprint.Of(reflect.TypeFor[V]())
	const path = 4 << 10 // up to 100 errors have their paths
	if err != nil || of.Check(raw) != nil || of.Inflates(raw, 0) || jsonvalue.LongestPath(found) > path {
		return v, false
	}
	if strict, err := kjson.UnmarshalStrict(raw, &v, kjson.DisallowUnknownFields); err != nil || len(strict) > 0 {
		var none V
		return none, false
	}
	return v, true
}
