package process

import (
	"testing"

	"gopf.dev/gopf/internal/object"
)

func TestOwnersArePackedOncePerVersion(t *testing.T) {
	body := func(version string) *object.Body {
		b, err := object.Parse([]byte(`{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "uid": "u", "resourceVersion": "` + version + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, test := range map[string]struct {
		before, now *object.Body
		again       bool
	}{
		"the same version":               {body("1"), body("1"), false},
		"a newer version":                {body("1"), body("2"), true},
		"the content of a known version": {body("1").At("2"), body("2"), true},
	} {
		var packer object.Packer
		o := &owner{newest: test.before}
		o.pack(&packer, func(*owner) {})
		first := o.body
		o.newest = test.now
		o.pack(&packer, func(*owner) {})
		if again := o.body != first; again != test.again {
			t.Errorf("%s: packed again: %t, want %t", name, again, test.again)
		}
		if string(o.body.Body().Raw()) != string(test.now.Raw()) || o.newest != nil {
			t.Errorf("%s: it is %s", name, o.body.Body().Raw())
		}
	}
}
