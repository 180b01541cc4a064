package essence

import (
	"encoding/json"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
)

func secretOf(values ...string) map[string]any {
	data := map[string]any{}
	for i := 0; i < len(values); i += 2 {
		data[values[i]] = values[i+1]
	}
	return map[string]any{"data": data, "type": "Opaque"}
}

func hidden(s Secrets, values ...string) map[string]any {
	e := secretOf(values...)
	s.Hide(e)
	return e
}

func TestStoredDigestsAreComparedWithTheCurrentValues(t *testing.T) {
	unkeyed, keyed, other := Secrets{UID: "u"}, Secrets{Key: []byte("0123456789abcdef"), UID: "u"}, Secrets{Key: []byte("fedcba9876543210"), UID: "u"}
	for name, c := range map[string]struct {
		now     Secrets
		stored  map[string]any
		changed bool
		plain   bool
	}{
		"without a key":                                 {now: unkeyed, stored: hidden(unkeyed, "a", "1")},
		"without a key, changed":                        {now: unkeyed, stored: hidden(unkeyed, "a", "2"), changed: true},
		"with the key":                                  {now: keyed, stored: hidden(keyed, "a", "1")},
		"with the key, changed":                         {now: keyed, stored: hidden(keyed, "a", "2"), changed: true},
		"plain":                                         {now: keyed, stored: secretOf("a", "1"), plain: true},
		"plain, changed":                                {now: keyed, stored: secretOf("a", "2"), plain: true, changed: true},
		"plain, without a key":                          {now: unkeyed, stored: secretOf("a", "1"), plain: true},
		"from without a key to a key":                   {now: keyed, stored: hidden(unkeyed, "a", "1")},
		"from without a key to a key, changed":          {now: keyed, stored: hidden(unkeyed, "a", "2"), changed: true},
		"from a key to none":                            {now: unkeyed, stored: hidden(keyed, "a", "1")},
		"from another key":                              {now: keyed, stored: hidden(other, "a", "1")},
		"from another key, changed: cannot be detected": {now: keyed, stored: hidden(other, "a", "2")},
		"from another key, removed":                     {now: keyed, stored: hidden(other, "a", "1", "b", "1"), changed: true},
		"from another key, added":                       {now: keyed, stored: hidden(other), changed: true},
	} {
		before, _ := json.Marshal(c.stored)
		plain := c.now.HidePlain(c.stored)
		if plain != c.plain {
			t.Errorf("%s: plain values: %v", name, plain)
		}
		renewed := c.now.Renew(c.stored, secretOf("a", "1"))
		if after, _ := json.Marshal(c.stored); !plain && string(after) != string(before) {
			t.Errorf("%s: the stored essence was modified", name)
		}
		now := hidden(c.now, "a", "1")
		if changed := !diff.Equal(renewed, now); changed != c.changed {
			t.Errorf("%s: changed: %v: %v and %v", name, changed, renewed, now)
		}
	}
}

func TestDigestsNameTheirKeyAndDifferBetweenObjects(t *testing.T) {
	keyed := Secrets{Key: []byte("0123456789abcdef"), UID: "u"}
	digest := func(s Secrets, value string) string {
		return hidden(s, "a", value)["data"].(map[string]any)["a"].(string)
	}
	if d := digest(keyed, "1"); len(strings.Split(d, ":")) != 3 || len(strings.Split(d, ":")[1]) != 8 {
		t.Errorf("no short key id: %s", d)
	}
	sibling := keyed
	sibling.UID = "v"
	if a, b := digest(keyed, "1"), digest(sibling, "1"); strings.Split(a, ":")[1] != strings.Split(b, ":")[1] || a == b {
		t.Errorf("equal values of two objects: %s and %s", a, b)
	}
}

func TestMaskShowsWhichKeysChanged(t *testing.T) {
	s := Secrets{UID: "u"}
	old, now := Mask(hidden(s, "same", "1", "changed", "1", "gone", "1"), hidden(s, "same", "1", "changed", "2", "new", "1"))
	text := diff.Of(old, now).String()
	const want = `add data.new: "changed"; remove data.gone: "changed"; change data.changed: "hidden" -> "changed"`
	if text != want {
		t.Errorf("the diff is %s", text)
	}
	if old, now := Mask(hidden(s, "a", "1"), nil); now != nil || old["data"].(map[string]any)["a"] != changedValue {
		t.Errorf("on deletion: %v, %v", old, now)
	}
	before := hidden(s, "a", "1")
	if Mask(before, before); !diff.Equal(before, hidden(s, "a", "1")) {
		t.Errorf("the essence was modified: %v", before)
	}
	if old, now := Mask(nil, hidden(s, "a", "1")); old != nil || now["data"].(map[string]any)["a"] != changedValue {
		t.Errorf("on creation: %v, %v", old, now)
	}
	forged := map[string]any{"data": map[string]any{"a": []any{map[string]any{}}}}
	Mask(forged, forged) // must not panic on values that == cannot compare
}

// Digests on existing objects must stay comparable.
func TestTheFormOfDigestsStays(t *testing.T) {
	for name, c := range map[string]struct {
		s    Secrets
		want string
	}{
		"without a key": {Secrets{UID: "u"}, "hmac-sha256:23e6ac503eee22a5e864b1daee3ad019"},
		"with a key":    {Secrets{Key: []byte("0123456789abcdef"), UID: "u"}, "hmac-sha256:f69792c3:3d6e8ffe3fb67de37907e7dd1e23a5d2"},
	} {
		values := map[string]any{"data": map[string]any{"a": "1"}, "stringData": map[string]any{"a": "1"}}
		c.s.Hide(values)
		for _, field := range []string{"data", "stringData"} {
			if got := values[field].(map[string]any)["a"]; got != c.want {
				t.Errorf("%s, %s: got %s, want %s", name, field, got, c.want)
			}
		}
	}
}

func TestOnlyTheDigestsOfOtherKeysAreRenewed(t *testing.T) {
	keyed, other := Secrets{Key: []byte("0123456789abcdef"), UID: "u"}, Secrets{Key: []byte("fedcba9876543210"), UID: "u"}
	own := hidden(keyed, "a", "old")["data"].(map[string]any)["a"]
	foreign := hidden(other, "b", "old")["data"].(map[string]any)["b"]
	stored := map[string]any{"data": map[string]any{"a": own, "b": foreign}}
	renewed := keyed.Renew(stored, secretOf("a", "1", "b", "2"))["data"].(map[string]any)
	if want := hidden(keyed, "b", "2")["data"].(map[string]any)["b"]; renewed["a"] != own || renewed["b"] != want {
		t.Errorf("got %v, want %v and %v", renewed, own, want)
	}
	for _, s := range []Secrets{keyed, {UID: "u"}} {
		same := hidden(s, "a", "1")
		if s.Renew(same, secretOf("a", "1"))["mark"] = true; same["mark"] != true {
			t.Errorf("an essence without foreign digests is copied with the key %q", s.Key)
		}
	}
}
