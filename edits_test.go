package gopf

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/test/scaling"
)

// editOnce runs one typed edit.
func editOnce[T Object](fields map[string]any, edit func(T)) { editAs[T](fields, []any{edit}) }

func TestTypedEditsKeepUnknownFields(t *testing.T) {
	fields := bodyOf(t, `{"metadata":{"name":"x","annotations":{"a":"1"}},"spec":{"size":"1Gi","unknown":{"deep":1}},"other":[1]}`).Map()
	editOnce(fields, func(c *claim) {
		c.Spec.Size = "2Gi"
		c.Labels["new"] = "label"
		delete(c.Annotations, "a")
	})
	want := map[string]any{
		"metadata": map[string]any{"name": "x", "labels": map[string]any{"new": "label"}},
		"spec":     map[string]any{"size": "2Gi", "unknown": map[string]any{"deep": int64(1)}},
		"other":    []any{int64(1)},
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Clients choose the size of the objects. Decoded values take many times the memory of their JSON.
func TestTypedEditsDecodeOnlyWhatChanges(t *testing.T) {
	type bag struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Small  string                     `json:"small"`
			Values map[string]json.RawMessage `json:"values"`
		} `json:"spec"`
	}
	values := "[" + strings.Repeat(`{"a":{}},`, 10_000) + "0]"
	text := []byte(`{"metadata":{"name":"x"},"spec":{"values":{"all":` + values + `}}}`)
	decoding := testing.AllocsPerRun(1, func() { _, _ = jsonvalue.Decode([]byte(values)) })
	edit := func(fields map[string]any) { editOnce(fields, func(b *bag) { b.Spec.Small = "new" }) }
	fields, err := jsonvalue.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1, func() { edit(fields.(map[string]any)) }); n > decoding/2 {
		t.Errorf("the edit allocated %g times, decoding the values allocates %g times", n, decoding)
	}
	if small := fields.(map[string]any)["spec"].(map[string]any)["small"]; small != "new" {
		t.Errorf("the result is %v", small)
	}
}

// Clients may write the status, and it is decoded to find out what a new one removes.
func TestTheStatusIsReplacedWhateverItWas(t *testing.T) {
	type status struct {
		Capacity corev1.ResourceList `json:"capacity,omitempty"`
		Used     []corev1.Container  `json:"used,omitempty"`
		Phase    string              `json:"phase,omitempty"`
		Ready    bool                `json:"ready"`
	}
	b := bodyOf(t, `{"status":{"phase":"Old","capacity":{"cpu":"123456789012345678901234e10000000"},"used":`+many("null", 7000)+`}}`)
	got := statusChanges(b, status{Ready: true, Capacity: corev1.ResourceList{"cpu": resource.MustParse("1")}})
	want := map[string]any{"phase": nil, "ready": true, "capacity": map[string]any{"cpu": "1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestErrorsOfTypedEditsAreShort(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); len(text) > 2000 || !strings.Contains(text, "for an edit") {
			t.Errorf("an error of %d bytes: %.100s", len(text), text)
		}
	}()
	editOnce(map[string]any{"metadata": map[string]any{"creationTimestamp": strings.Repeat("x", 10_000)}}, func(*claim) {})
	t.Error("the edit was called")
}

// A merge patch replaces whole lists, and Go types may be older than the objects.
func TestEditsKeepWhatTheTypeLacksInItemsOfLists(t *testing.T) {
	type user struct {
		Name  string `json:"name"`
		Admin bool   `json:"admin"`
	}
	type db struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Users []user `json:"users"`
			Other []struct {
				Users []user `json:"users"`
			} `json:"other,omitempty"`
		} `json:"spec"`
	}
	const list = `[{"name":"a","extra":{"keep":1}},{"extra":[2]},{"name":"c","admin":true,"more":3}]`
	for name, c := range map[string]struct {
		edit       func(*db)
		users, all string // "" means unchanged
	}{
		"an added item":       {func(d *db) { d.Spec.Users = append(d.Spec.Users, user{Name: "d"}) }, `[{"name":"a","extra":{"keep":1}},{"extra":[2]},{"name":"c","admin":true,"more":3},{"name":"d","admin":false}]`, ""},
		"a changed item":      {func(d *db) { d.Spec.Users[0].Admin = true }, `[{"name":"a","extra":{"keep":1},"admin":true},{"extra":[2]},{"name":"c","admin":true,"more":3}]`, ""},
		"an item is gone":     {func(d *db) { d.Spec.Users = d.Spec.Users[1:] }, `[{"extra":[2]},{"name":"c","admin":true,"more":3}]`, ""},
		"another order":       {func(d *db) { slices.Reverse(d.Spec.Users) }, `[{"name":"c","admin":true,"more":3},{"extra":[2]},{"name":"a","extra":{"keep":1}}]`, ""},
		"no item":             {func(d *db) { d.Spec.Users = nil }, `null`, ""},
		"a list in a list":    {func(d *db) { d.Spec.Other[0].Users[0].Admin = true }, "", `[{"users":[{"name":"a","extra":1,"admin":true}],"more":2}]`},
		"nothing":             {func(*db) {}, "", ""},
		"another field":       {func(d *db) { d.Labels["a"] = "b" }, "", ""},
		"the name of an item": {func(d *db) { d.Spec.Users[1].Name = "b" }, `[{"name":"a","extra":{"keep":1}},{"name":"b","admin":false},{"name":"c","admin":true,"more":3}]`, ""},
	} {
		const other = `[{"users":[{"name":"a","extra":1}],"more":2}]`
		fields := bodyOf(t, `{"metadata":{"name":"x"},"spec":{"users":`+list+`,"other":`+other+`,"unknown":1}}`).Map()
		editOnce(fields, c.edit)
		users, others := list, other
		if c.users != "" {
			users = c.users
		}
		if c.all != "" {
			others = c.all
		}
		want := bodyOf(t, `{"spec":{"users":`+users+`,"other":`+others+`,"unknown":1}}`).Map()["spec"].(map[string]any)
		if users == "null" {
			delete(want, "users")
		}
		if diff := cmp.Diff(want, fields["spec"]); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// Handlers may edit an object for each item of a list.
func TestEditsOfAHandlerDecodeTheObjectOnce(t *testing.T) {
	scaling.Check(t, 100, func(n int) {
		collected := &patch.Patch{}
		p := &Patch[*claim]{p: collected}
		for i := range n {
			p.Edit(func(c *claim) {
				c.Spec.Count++
				c.Labels[fmt.Sprint(i)] = "x"
			})
		}
		got := collected.Fold(func() map[string]any { return map[string]any{"metadata": map[string]any{"name": "x"}} })
		if count := got["spec"].(map[string]any)["count"]; count != int64(n) || len(collected.Edits()) != 1 {
			t.Errorf("%d edits are %d, and counted to %v", n, len(collected.Edits()), count)
		}
	})
}

type switches struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		List []struct {
			A, B, C, D, E, F, G, H bool
		} `json:"list"`
	} `json:"spec"`
	Status switchesStatus `json:"status,omitzero"`
}

type switchesStatus struct {
	List  []struct{ A, B, C, D, E, F, G, H bool } `json:"list,omitempty"`
	Phase string                                  `json:"phase"`
}

// A list of nulls becomes 20 times as long as JSON of structs.
func TestEditsMustNotMakeTheJSONFarLonger(t *testing.T) {
	for name, c := range map[string]struct {
		list string
		want bool
	}{
		"few nulls":    {many("null", 1000), true},
		"many nulls":   {many("null", 100_000), false},
		"usual values": {many(`{"A":true,"B":false,"C":false,"D":true,"E":true,"F":true,"G":true,"H":true}`, 20_000), true},
	} {
		fields, err := jsonvalue.Decode([]byte(`{"metadata":{"name":"x"},"spec":{"list":` + c.list + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		edited := false
		func() {
			defer func() {
				if err := recover(); (err == nil) != c.want || err != nil && !strings.Contains(fmt.Sprint(err), "four times as long") {
					t.Errorf("%s: %.200v", name, err)
				}
			}()
			editOnce(fields.(map[string]any), func(*switches) { edited = true })
		}()
		if edited != c.want {
			t.Errorf("%s: edited: %v", name, edited)
		}
	}
	status := bodyOf(t, `{"status":{"list":`+many("null", 100_000)+`,"phase":"Old"}}`)
	got := statusChanges(status, switchesStatus{Phase: "New"})
	if diff := cmp.Diff(map[string]any{"phase": "New"}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestPatchesCollectChanges(t *testing.T) {
	collected := &patch.Patch{}
	p := &Patch[*claim]{p: collected}
	p.Set("spec.size", "2Gi")
	p.Remove("spec.count")
	p.Label("app.kubernetes.io/name", "x")
	p.Unlabel("old")
	p.Annotate("note", "y")
	p.Unannotate("gone")
	p.MergeStatus(map[string]any{"phase": "Ready", "nested": map[string]int{"a": 1}})
	p.MergeStatus(struct {
		Nested map[string]int `json:"nested"`
	}{map[string]int{"b": 2}})
	want := map[string]any{
		"spec": map[string]any{"size": "2Gi", "count": nil},
		"metadata": map[string]any{
			"labels":      map[string]any{"app.kubernetes.io/name": "x", "old": nil},
			"annotations": map[string]any{"note": "y", "gone": nil},
		},
		"status": map[string]any{"phase": "Ready", "nested": map[string]any{"a": int64(1), "b": int64(2)}},
	}
	if diff := cmp.Diff(want, collected.Fields()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestSetStatusReplacesTheKnownFields(t *testing.T) {
	type inner struct {
		A string            `json:"a,omitempty"`
		M map[string]string `json:"m,omitempty"`
	}
	type status struct {
		Phase   string   `json:"phase"`
		Error   string   `json:"error,omitempty"`
		Items   []string `json:"items,omitempty"`
		Inner   *inner   `json:"inner,omitempty"`
		Numbers int64    `json:"numbers,omitempty"`
	}
	for name, test := range map[string]struct {
		read string
		set  any
		want string // the merge patch; "{}" means nothing to send
	}{
		"into nothing":            {`{}`, status{Phase: "Ready"}, `{"phase":"Ready"}`},
		"an empty field, absent":  {`{}`, status{}, `{"phase":""}`},
		"an empty field, present": {`{"phase":""}`, status{}, `{}`},
		"unchanged":               {`{"phase":"Ready","error":"x"}`, &status{Phase: "Ready", Error: "x"}, `{}`},
		"an omitted field":        {`{"phase":"Ready","error":"x"}`, status{Phase: "Ready"}, `{"error":null}`},
		"fields of others":        {`{"phase":"a","kopf":{"progress":{}},"create_fn":{"message":"hi"}}`, status{Phase: "b"}, `{"phase":"b"}`},
		"a list":                  {`{"phase":"","items":["a","b"]}`, status{Items: []string{"b"}}, `{"items":["b"]}`},
		"an inner struct":         {`{"phase":"","inner":{"a":"1","b":"2"}}`, status{Inner: &inner{}}, `{"inner":{"a":null}}`},
		"no inner struct":         {`{"phase":"","inner":{"a":"1"}}`, status{}, `{"inner":null}`},
		"a key of a map":          {`{"phase":"","inner":{"m":{"x":"1","y":"2"}}}`, status{Inner: &inner{M: map[string]string{"y": "2"}}}, `{"inner":{"m":{"x":null}}}`},
		"a big number":            {`{"phase":"","numbers":9007199254740993}`, status{Numbers: 9007199254740992}, `{"numbers":9007199254740992}`},
		"fields that do not fit":  {`{"phase":{"is":"an object"},"error":"x"}`, status{Phase: "a"}, `{"phase":"a","error":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			collected := &patch.Patch{}
			p := &Patch[*claim]{p: collected, body: bodyOf(t, `{"metadata":{"name":"x"},"status":`+test.read+`}`)}
			p.SetStatus(test.set)
			found, _ := collected.Lookup("status")
			if found == nil {
				found = map[string]any{}
			}
			got, err := json.Marshal(found)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			_ = json.Unmarshal(got, &a)
			_ = json.Unmarshal([]byte(test.want), &b)
			if diff := cmp.Diff(b, a); diff != "" {
				t.Errorf("got %s: -want +got\n%s", got, diff)
			}
		})
	}
}

func TestSetStatusRefusesMaps(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "use MergeStatus for maps") {
			t.Errorf("got %v", err)
		}
	}()
	(&Patch[*claim]{p: &patch.Patch{}, body: bodyOf(t, `{"metadata":{"name":"x"}}`)}).SetStatus(map[string]any{"a": 1})
	t.Error("it did not panic")
}

// Handlers may put texts of an object into paths.
func TestObjectsInPathsTakeMemory(t *testing.T) {
	path := func(i int) string { return fmt.Sprint("status.seen.", i, strings.Repeat(".a", 100)) }
	for name, c := range map[string]struct {
		hold func(int, bool) bool
		want int // paths until the handler fails
		held int
	}{
		"enough memory":        {func(int, bool) bool { return true }, 300, 300 * 101 * nestedMemory},
		"little memory":        {func(bytes int, wait bool) bool { return wait && bytes < 8<<20 }, 89, 8 << 20},
		"a review or a daemon": {nil, 99, 0},
	} {
		t.Run(name, func(t *testing.T) {
			held := 0
			req := &handler.Request{Body: bodyOf(t, `{"metadata":{"name":"x"}}`), Patch: &patch.Patch{}}
			if c.hold != nil {
				req.Hold = func(_ context.Context, _ string, bytes int, wait, _ bool) bool {
					held = bytes
					return c.hold(bytes, wait)
				}
			}
			s, err := newSubject[Unstructured](req)
			if err != nil {
				t.Fatal(err)
			}
			done := 0
			defer func() {
				if failure := recover(); (failure != nil) != (c.want < 300) || failure != nil && !strings.Contains(fmt.Sprint(failure), "no memory") {
					t.Errorf("got %v", failure)
				}
				if done != c.want || held > c.held+fewNested*nestedMemory || held < c.held-fewNested*nestedMemory {
					t.Errorf("%d paths with %d bytes, want %d with %d", done, held, c.want, c.held)
				}
			}()
			for i := range 300 {
				s.Patch.Set(path(i), i)
				done++
			}
		})
	}
	usual := &handler.Request{Body: bodyOf(t, `{"metadata":{"name":"x"}}`), Patch: &patch.Patch{}, Hold: func(context.Context, string, int, bool, bool) bool {
		t.Error("a patch with few objects asks for memory")
		return true
	}}
	s, err := newSubject[Unstructured](usual)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		s.Patch.Set(fmt.Sprintf("status.seen.name-%d", i), true)
	}
}

// Values of Go may share a text of the object that their JSON repeats.
func TestChangesThatRepeatATextAreRefused(t *testing.T) {
	type user struct {
		Name string `json:"name"`
		Role string `json:"role"`
	}
	type status struct {
		Users []user `json:"users"`
	}
	type db struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              status `json:"spec"`
	}
	text := strings.Repeat("x", 100_000)
	users := func(n int) (list []user) { return slices.Repeat([]user{{"a", text}}, n) }
	for name, change := range map[string]func(s *Subject[*db], n int){
		"set": func(s *Subject[*db], n int) {
			for i, u := range users(n) {
				s.Patch.Set(fmt.Sprint("status.users.", i), u)
			}
		},
		"merge":  func(s *Subject[*db], n int) { s.Patch.MergeStatus(status{users(n)}) },
		"status": func(s *Subject[*db], n int) { s.Patch.SetStatus(status{users(n)}) },
		"edit": func(s *Subject[*db], n int) {
			s.Patch.Edit(func(d *db) { d.Spec.Users = users(n) })
			s.req.Patch.Fold(func() map[string]any { return s.req.Body.Map() })
		},
	} {
		for n, fits := range map[int]bool{20: true, 40: false} {
			s, err := newSubject[*db](&handler.Request{Body: bodyOf(t, `{"metadata":{"name":"x"}}`), Patch: &patch.Patch{}})
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() {
					if err := recover(); (err == nil) != fits || err != nil && !strings.Contains(fmt.Sprint(err), "3 MiB") {
						t.Errorf("%s, %d times: %.200v", name, n, err)
					}
				}()
				change(s, n)
			}()
		}
	}
}

// A handler may report its progress again and again.
func TestReplacedValuesDoNotCount(t *testing.T) {
	collected := &patch.Patch{}
	s, err := newSubject[Unstructured](&handler.Request{Body: bodyOf(t, `{"metadata":{"name":"x"}}`), Patch: collected})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 100_000)
	for i := range 1000 {
		s.Patch.Set("status.progress", fmt.Sprint(i, text))
		s.Patch.MergeStatus(map[string]any{"other": text})
		s.SetCondition("Busy", true, "Working", text)
	}
	for i := range 200 {
		s.SetCondition(fmt.Sprint("User", i), true, "Known", text)
	}
	got := collected.Fold(func() map[string]any { return map[string]any{} })
	for i, c := range got["status"].(map[string]any)["conditions"].([]any) {
		if message := c.(map[string]any)["message"].(string); len(message) > shortMessage || len(message) < shortMessage-10 {
			t.Errorf("condition %d has %d bytes", i, len(message))
		}
	}
}
