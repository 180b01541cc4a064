package children

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/test/scaling"
)

const ownedFields = `{"f:metadata":{"f:labels":{"f:a/\"b":{}},"f:finalizers":{"v:\"x\"":{}}},
	"f:spec":{".":{},"f:replicas":{},"f:map":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}},"f:args":{"i:1":{}}}}`

const ownedObject = `{"metadata":{"labels":{"a/\"b":"1","c":"2"},"finalizers":["w","x"],"resourceVersion":"7"},
	"spec":{"replicas":3,"map":{"k":{"l":[1,2]}},"other":"o","args":["p","q"],
	"ports":[{"port":81,"protocol":"TCP","name":"b"},{"protocol":"TCP","name":"a","port":80,"extra":1}]},"status":{"phase":"x"}}`

func contentOf(fields, object string) uint64 {
	entries := []ManagedFields{
		{Manager: "other", Operation: "Update", FieldsV1: json.RawMessage(`{"f:spec":{"f:other":{}}}`)},
		{Manager: "me", Operation: "Apply", FieldsV1: json.RawMessage(fields)},
		{Manager: "me", Operation: "Update", Subresource: "status", FieldsV1: json.RawMessage(`{"f:status":{"f:phase":{}}}`)},
	}
	return Content(entries, "me", []byte(object))
}

func TestTheContentIsThatOfTheFieldsOfTheManager(t *testing.T) {
	before := contentOf(ownedFields, ownedObject)
	for change, differs := range map[[2]string]bool{
		{`"a/\"b":"1"`, `"a/\"b":"2"`}:                     true,
		{`"a/\"b":"1",`, ``}:                               true,
		{`"c":"2"`, `"c":"3"`}:                             false,
		{`"finalizers":["w","x"]`, `"finalizers":["x"]`}:   false,
		{`"finalizers":["w","x"]`, `"finalizers":["w"]`}:   true,
		{`"resourceVersion":"7"`, `"resourceVersion":"8"`}: false,
		{`"replicas":3`, `"replicas":4`}:                   true,
		{`"replicas":3,`, ``}:                              true,
		{`"l":[1,2]`, `"l":[2,1]`}:                         true,
		{`"other":"o"`, `"other":"p"`}:                     false,
		{`["p","q"]`, `["r","q"]`}:                         false,
		{`["p","q"]`, `["p","r"]`}:                         true,
		{`["p","q"]`, `["p"]`}:                             true,
		{`"name":"b"`, `"name":"c"`}:                       false,
		{`"name":"a"`, `"name":"c"`}:                       true,
		{`"extra":1`, `"extra":2`}:                         false,
		{`{"port":81,"protocol":"TCP","name":"b"},`, ``}:   false,
		{`"port":80`, `"port":82`}:                         true,
		{`"phase":"x"`, `"phase":"y"`}:                     false,
		{`"spec":{`, `"speck":{`}:                          true,
	} {
		changed := strings.Replace(ownedObject, change[0], change[1], 1)
		if changed == ownedObject {
			t.Fatalf("%q is not in the object", change[0])
		}
		if got := contentOf(ownedFields, changed); (got != before) != differs {
			t.Errorf("%q to %q: the content differs: %t, want %t", change[0], change[1], got != before, differs)
		}
	}
	if got := Content(nil, "me", []byte(ownedObject)); got != 0 {
		t.Errorf("without an entry, the content is %d", got)
	}
	if before == 0 || contentOf(`{}`, ownedObject) == 0 {
		t.Error("the content of an entry is 0, which means that there is none")
	}
}

// Clients may write any managedFields that the API server accepts.
func TestTheContentOfHostileEntries(t *testing.T) {
	for _, fields := range []string{``, `{`, `[]`, `{"f:spec"`, `{"f:spec":`, `{"f:spec":{"k:":{}}}`, `{"f:spec":{"f:ports":{"k:{":{},"k:[]":{},"k:{\"port\"":{}}}}`, `{"x":{},"i:-1":{},"i:9":{},"v:":{}}`} {
		contentOf(fields, ownedObject)
		contentOf(ownedFields, fields)
	}
	for name, build := range map[string]func(n int) (fields, object string){
		"keys": func(n int) (string, string) {
			var fields, items []string
			for i := range n {
				fields, items = append(fields, fmt.Sprintf(`"k:{\"name\":\"n%d\"}":{"f:name":{}}`, i)), append(items, fmt.Sprintf(`{"name":"n%d"}`, i))
			}
			return `{"f:list":{` + strings.Join(fields, ",") + `}}`, `{"list":[` + strings.Join(items, ",") + `]}`
		},
		"many members of a key": func(n int) (string, string) {
			var key, fields, items []string
			for i := range n {
				key = append(key, fmt.Sprintf(`\"a%d\":1`, i))
				fields, items = append(fields, fmt.Sprintf(`"k:{\"a%d\":1}":{}`, i)), append(items, fmt.Sprintf(`{"a%d":1}`, i))
			}
			return `{"f:list":{"k:{` + strings.Join(key, ",") + `}":{},` + strings.Join(fields, ",") + `}}`, `{"list":[` + strings.Join(items, ",") + `]}`
		},
		"levels": func(n int) (string, string) {
			n = min(n, 8_000)
			return strings.Repeat(`{"f:a":`, n) + `{}` + strings.Repeat(`}`, n), strings.Repeat(`{"a":`, n) + `1` + strings.Repeat(`}`, n)
		},
		"levels of lists": func(n int) (string, string) {
			n = min(n, 8_000)
			return strings.Repeat(`{"i:0":`, n) + `{}` + strings.Repeat(`}`, n), strings.Repeat(`[`, n) + `1` + strings.Repeat(`]`, n)
		},
		"set": func(n int) (string, string) {
			var fields, items []string
			for i := range n {
				fields, items = append(fields, fmt.Sprintf(`"v:%d":{}`, i)), append(items, fmt.Sprint(i))
			}
			return `{"f:list":{` + strings.Join(fields, ",") + `}}`, `{"list":[` + strings.Join(items, ",") + `]}`
		},
		"members": func(n int) (string, string) {
			var fields, items []string
			for i := range n {
				fields, items = append(fields, fmt.Sprintf(`"f:m%d":{}`, i)), append(items, fmt.Sprintf(`"m%d":1`, i))
			}
			return `{"f:map":{` + strings.Join(fields, ",") + `}}`, `{"map":{` + strings.Join(items, ",") + `}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			scaling.Check(t, 1000, func(n int) {
				fields, object := build(n)
				contentOf(fields, object)
			})
		})
	}
	t.Run("entries of the operator", func(t *testing.T) { // each names a part of a large object
		scaling.Check(t, 500, func(n int) {
			var entries []ManagedFields
			for range n {
				entries = append(entries, ManagedFields{Manager: "me", Operation: "Update", FieldsV1: json.RawMessage(`{"f:a":{}}`)})
			}
			Content(entries, "me", []byte(`{"managed":[`+strings.Repeat(`{"a":1},`, n)+`1],"a":1}`))
		})
	})
	t.Run("names and entries", func(t *testing.T) { // their product must not count
		scaling.Check(t, 500, func(n int) {
			var names []string
			var entries []ManagedFields
			for i := range n {
				names = append(names, fmt.Sprintf(`"f:%x":{}`, i))
				entries = append(entries, ManagedFields{Manager: fmt.Sprint("m", i), Operation: "Apply", FieldsV1: json.RawMessage(`{"f:a":{"f:b":{}}}`)})
			}
			entries = append(entries, ManagedFields{Manager: "me", Operation: "Apply", FieldsV1: json.RawMessage(`{` + strings.Join(names, ",") + `}`)})
			Content(entries, "me", []byte(`{"a":1}`))
		})
	})
	many, object := []ManagedFields{}, []byte(`{"spec":"`+strings.Repeat("x", 1<<20)+`"}`)
	for range 100_000 { // of 100 GB
		many = append(many, ManagedFields{Manager: "me", FieldsV1: json.RawMessage(`{"f:spec":{}}`)})
	}
	Content(many, "me", object)
	for i := range many {
		many[i].Manager = "other"
	}
	Content(append(many, ManagedFields{Manager: "me", FieldsV1: json.RawMessage(strings.Repeat(`{"f:a":`, 8000) + `{}` + strings.Repeat(`}`, 8000))}), "me", object)
}

// Others may fill an empty map or list that the manager applies. If nobody has a part, it belongs to the
// whole value, as in a map that is replaced as a whole.
func TestTheContentOfAnEmptyMapWithoutThePartsOfOthers(t *testing.T) {
	hash := func(theirs, value string) uint64 {
		return Content([]ManagedFields{
			{Manager: "me", Operation: "Apply", FieldsV1: json.RawMessage(`{"f:spec":{"f:map":{}}}`)},
			{Manager: "other", Operation: "Update", FieldsV1: json.RawMessage(`{"f:spec":{"f:map":` + theirs + `}}`)},
			{Manager: "third", Operation: "Update", FieldsV1: json.RawMessage(`{"f:spec":{"f:x":{}}}`)},
		}, "me", []byte(`{"spec":{"map":`+value+`}}`))
	}
	for name, c := range map[string]struct {
		theirs, before, after string
		differs               bool
	}{
		"their key changes":                    {`{"f:a":{}}`, `{"a":"1"}`, `{"a":"2"}`, false},
		"their key is added":                   {`{"f:a":{}}`, `{}`, `{"a":"2"}`, false},
		"their item is added":                  {`{"k:{\"a\":1}":{}}`, `[]`, `[{"a":1}]`, false},
		"an item of nobody is added":           {`{}`, `[]`, `[{"a":1}]`, true},
		"a key of nobody is added":             {`{}`, `{}`, `{"a":1}`, true},
		"it is replaced by a number":           {`{}`, `{}`, `0`, true},
		"a part of their key changes":          {`{"f:a":{"f:b":{}}}`, `{"a":{"b":1}}`, `{"a":{"b":2}}`, false},
		"a key of nobody changes":              {`{"f:a":{}}`, `{"a":"1","b":"1"}`, `{"a":"1","b":"2"}`, true},
		"a key changes, the map is nobody's":   {`{}`, `{"a":"1"}`, `{"a":"2"}`, true},
		"their item changes":                   {`{"k:{\"a\":1}":{}}`, `[{"a":1}]`, `[{"a":1,"b":2}]`, false},
		"the list is replaced by another type": {`{"k:{\"a\":1}":{}}`, `[{"a":1}]`, `"x"`, true},
	} {
		before := c.theirs
		if c.before == "{}" || c.before == "[]" { // they have nothing yet
			before = "{}"
		}
		if differs := hash(before, c.before) != hash(c.theirs, c.after); differs != c.differs {
			t.Errorf("%s: the content differs: %t, want %t", name, differs, c.differs)
		}
	}
}

// The length of the status must not decide how much of the rest is read.
func TestTheContentOfALargeObjectDoesNotDependOnTheRest(t *testing.T) {
	for n := 200; n <= 5000; n += 600 {
		var env, fields []string
		for i := range n {
			env = append(env, fmt.Sprintf(`{"name":"n%d","value":"%s"}`, i, strings.Repeat("x", 260)))
			fields = append(fields, fmt.Sprintf(`"k:{\"name\":\"n%d\"}":{".":{},"f:name":{},"f:value":{}}`, i))
		}
		owned := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:name":{},"f:env":{` + strings.Join(fields, ",") + `}}}}}}}`
		hash := func(value, status string) uint64 {
			return contentOf(owned, `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[`+strings.Join(env, ",")+`,{"name":"n0","value":"`+value+`"}]}]}}},"status":{"message":"`+status+`"}}`)
		}
		before := hash("x", "")
		for i := range 4 {
			if hash("x", strings.Repeat("s", i*10_000)) != before {
				t.Errorf("%d items: a status changes the hash", n)
			}
		}
		if before == unread {
			t.Logf("%d items are too many", n)
		} else if hash("y", "") == before {
			t.Errorf("%d items: a change keeps the hash", n)
		}
	}
}

func TestTheContentOfLargeObjects(t *testing.T) {
	long := func(a, b string) uint64 {
		return contentOf(`{"f:spec":{"f:a":{},"f:b":{}}}`, `{"spec":{"a":"`+a+`","b":"`+b+`","c":"x"}}`)
	}
	for _, size := range []int{textSize / 3, textSize / 2, textSize, 3 * textSize} {
		text := strings.Repeat("x", size)
		seen := map[uint64]bool{}
		for _, of := range [][2]string{{text, text}, {text + "x", text}, {text, text + "x"}, {text, ""}, {"", text}, {text + text, ""}} {
			seen[long(of[0], of[1])] = true
		}
		if len(seen) != 6 || long(text, text) != long(text, text) {
			t.Errorf("%d bytes: %d of 6 contents differ", size, len(seen))
		}
	}
}

func BenchmarkContent(b *testing.B) {
	entries := []ManagedFields{{Manager: "me", FieldsV1: json.RawMessage(ownedFields)}}
	b.SetBytes(int64(len(ownedObject)))
	for b.Loop() {
		Content(entries, "me", []byte(ownedObject))
	}
}

// Earlier versions look for small letters in the flags of an entry, and ignore all others.
func TestTheContentIsStoredInTheInventory(t *testing.T) {
	for _, flags := range []Entry{{}, {Outside: true, Orphan: true, Last: true, Wave: 3}} {
		e := flags
		e.Key = Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a"}
		e.UID, e.Stamp, e.Content, e.Digest = "0a0b0c0d", 1, 0xABCDEF0102030405, 3
		text, err := (&Inventory{Owner: "0a0b0c0d", Entries: []Entry{e}}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text, "0a0b0c0d")
		if err != nil || len(got.Entries) != 1 || got.Entries[0] != e {
			t.Errorf("%s: got %+v, want %+v (%v)", text, got.Entries, e, err)
		}
		_, stored, _ := strings.Cut(text, "=")
		if hash := strings.TrimSuffix(stored, "/ns"); hash != "ABCDEF0102030405" {
			t.Errorf("the content is stored as %q", hash)
		}
		for _, wrong := range []string{"ABCDEF0G02030405", "1ABCDEF0102030405", ""} {
			if _, err := Decode(strings.Replace(text, "ABCDEF0102030405", wrong, 1), "0a0b0c0d"); err == nil {
				t.Errorf("the content %q is accepted", wrong)
			}
		}
	}
}
