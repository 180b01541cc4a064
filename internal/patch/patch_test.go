package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"gopf.dev/gopf/internal/jsonvalue"
)

type fields = map[string]any

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestAPatchCollectsChanges(t *testing.T) {
	cases := map[string]struct {
		change func(*Patch)
		want   fields
	}{
		"nothing":                   {func(*Patch) {}, nil},
		"a value":                   {func(p *Patch) { p.Set(1, "a") }, fields{"a": 1}},
		"values inside":             {func(p *Patch) { p.Set(1, "o", "a"); p.Set(2, "o", "b") }, fields{"o": fields{"a": 1, "b": 2}}},
		"a value inside of another": {func(p *Patch) { p.Set(1, "o"); p.Set(2, "o", "b") }, fields{"o": fields{"b": 2}}},
		"a deletion":                {func(p *Patch) { p.Set(nil, "a") }, fields{"a": nil}},
		"a merged value":            {func(p *Patch) { p.Merge(1, "a") }, fields{"a": 1}},
		"merged fields":             {func(p *Patch) { p.Set(1, "o", "a"); p.Merge(fields{"b": fields{"c": 2}}, "o") }, fields{"o": fields{"a": 1, "b": fields{"c": 2}}}},
		"merged without a path":     {func(p *Patch) { p.Set(1, "a"); p.Merge(fields{"b": 2}) }, fields{"a": 1, "b": 2}},
		"an empty map":              {func(p *Patch) { p.Merge(fields{}, "o", "a") }, fields{"o": fields{"a": fields{}}}},
		"fields instead of a value": {func(p *Patch) { p.Set(1, "o"); p.Merge(fields{"a": 2}, "o") }, fields{"o": fields{"a": 2}}},
		"removed again":             {func(p *Patch) { p.Set(1, "o", "a"); p.Set(2, "b"); p.Remove("o", "a") }, fields{"b": 2}},
		"removed beside others":     {func(p *Patch) { p.Set(1, "o", "a"); p.Set(2, "o", "b"); p.Remove("o", "a") }, fields{"o": fields{"b": 2}}},
		"removed a missing path":    {func(p *Patch) { p.Set(1, "a"); p.Remove("o", "a"); p.Remove("a", "b") }, fields{"a": 1}},
		"absorbed":                  {func(p *Patch) { p.Set(1, "o", "a"); var q Patch; q.Set(2, "o", "b"); p.Absorb(&q) }, fields{"o": fields{"a": 1, "b": 2}}},
	}
	for name, c := range cases {
		var p Patch
		c.change(&p)
		same(t, name, p.Fields(), c.want)
		if p.Empty() != (len(c.want) == 0) {
			t.Errorf("%s: empty is %v", name, p.Empty())
		}
	}
}

func TestLookupFindsValuesAndDeletions(t *testing.T) {
	var p Patch
	p.Set(nil, "o", "a")
	for path, want := range map[[2]string]bool{{"o", "a"}: true, {"o", "b"}: false, {"x", "a"}: false} {
		if v, found := p.Lookup(path[0], path[1]); found != want || v != nil {
			t.Errorf("%v: got %v, %v", path, v, found)
		}
	}
	p.Set(1, "v")
	if v, found := p.Lookup("v"); v != 1 || !found {
		t.Errorf("got %v, %v", v, found)
	}
	if v, found := p.Lookup("v", "inside"); found || v != nil {
		t.Errorf("inside of a number: got %v, %v", v, found)
	}
}

func TestEditsAreFoldedIntoThePatch(t *testing.T) {
	object := fields{"spec": fields{"a": "1", "b": "2"}}
	var p, q Patch
	p.Set("9", "spec", "a")
	p.Edit(func(o map[string]any) { o["spec"].(fields)["c"] = o["spec"].(fields)["a"] })
	q.Edit(func(o map[string]any) { delete(o["spec"].(fields), "b") })
	if q.Empty() || len(q.Edits()) != 1 {
		t.Errorf("a patch with an edit: empty is %v, and it has %d", q.Empty(), len(q.Edits()))
	}
	p.Absorb(&q)
	same(t, "folded", p.Fold(func() map[string]any { return object }), fields{"spec": fields{"a": "9", "b": nil, "c": "9"}})
	same(t, "the object", object, fields{"spec": fields{"a": "1", "b": "2"}})
	same(t, "the explicit changes", p.Fields(), fields{"spec": fields{"a": "9"}})
	var plain Patch
	plain.Set(1, "a")
	same(t, "without edits", plain.Fold(func() map[string]any { t.Error("the object is decoded"); return object }), fields{"a": 1})
}

func TestTheStatusIsSplitOff(t *testing.T) {
	var p Patch
	p.Set(1, "spec", "a")
	main, status := p.Split()
	same(t, "main", main, fields{"spec": fields{"a": 1}})
	same(t, "no status", status, fields(nil))
	p.Set(2, "status", "b")
	main, status = p.Split()
	same(t, "main", main, fields{"spec": fields{"a": 1}})
	same(t, "status", status, fields{"status": fields{"b": 2}})
	same(t, "the patch", p.Fields(), fields{"spec": fields{"a": 1}, "status": fields{"b": 2}})
}

func TestBetweenIsThePatchFromOneObjectToAnother(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want fields }{
		"equal":                 {fields{"a": 1}, fields{"a": 1}, fields{}},
		"changed":               {fields{"a": 1}, fields{"a": 2}, fields{"a": 2}},
		"added":                 {fields{}, fields{"a": fields{"b": 1}}, fields{"a": fields{"b": 1}}},
		"removed":               {fields{"a": 1}, fields{}, fields{"a": nil}},
		"a null removed":        {fields{"a": nil}, fields{}, fields{}},
		"a null added":          {fields{}, fields{"a": nil}, fields{}},
		"changed to a null":     {fields{"a": 1}, fields{"a": nil}, fields{"a": nil}},
		"inside":                {fields{"o": fields{"a": 1, "b": 2}}, fields{"o": fields{"a": 1, "b": 3}}, fields{"o": fields{"b": 3}}},
		"a null added inside":   {fields{"o": fields{"a": 1}}, fields{"o": fields{"a": 1, "b": nil}}, fields{}},
		"a value becomes a map": {fields{"o": 1}, fields{"o": fields{"a": 1}}, fields{"o": fields{"a": 1}}},
		"a map becomes a value": {fields{"o": fields{"a": 1}}, fields{"o": 1}, fields{"o": 1}},
	} {
		same(t, name, Between(c.before, c.after), c.want)
	}
}

func TestApply(t *testing.T) {
	for name, c := range map[string]struct{ fields, merge, want fields }{
		"nothing":                {fields{"a": 1}, fields{}, fields{"a": 1}},
		"a value":                {fields{"a": 1, "b": 2}, fields{"a": 3}, fields{"a": 3, "b": 2}},
		"a deletion":             {fields{"a": 1, "b": 2}, fields{"a": nil}, fields{"b": 2}},
		"a deletion of nothing":  {fields{"b": 2}, fields{"a": nil}, fields{"b": 2}},
		"inside":                 {fields{"o": fields{"a": 1, "b": 2}}, fields{"o": fields{"a": nil, "c": 3}}, fields{"o": fields{"b": 2, "c": 3}}},
		"the last key inside":    {fields{"o": fields{"a": 1}}, fields{"o": fields{"a": nil}}, fields{"o": fields{}}},
		"a new map":              {fields{}, fields{"o": fields{"p": fields{"a": 1, "b": nil}}}, fields{"o": fields{"p": fields{"a": 1}}}},
		"a map replaces a value": {fields{"o": 1}, fields{"o": fields{"a": 1}}, fields{"o": fields{"a": 1}}},
		"a list is replaced":     {fields{"l": []any{1, 2}}, fields{"l": []any{3}}, fields{"l": []any{3}}},
	} {
		Apply(c.fields, c.merge)
		same(t, name, c.fields, c.want)
	}
}

func TestMinusRemovesTheFieldsOfTheOtherPatch(t *testing.T) {
	for name, c := range map[string]struct{ merge, other, want fields }{
		"nothing":         {fields{"a": 1}, fields{}, fields{"a": 1}},
		"a value":         {fields{"a": 1, "b": 2}, fields{"a": 3}, fields{"b": 2}},
		"inside":          {fields{"o": fields{"a": 1, "b": 2}}, fields{"o": fields{"a": nil}}, fields{"o": fields{"b": 2}}},
		"the whole patch": {fields{"o": fields{"a": 1}}, fields{"o": fields{"a": 1}}, fields{}},
		"a whole map":     {fields{"o": fields{"a": 1}}, fields{"o": nil}, fields{}},
	} {
		same(t, name, Minus(c.merge, c.other), c.want)
	}
}

func TestOpsHaveTheEffectOfTheMergePatch(t *testing.T) {
	all, none := func(string) bool { return true }, func(string) bool { return false }
	long, longest := strings.Repeat("k", longPointer), strings.Repeat("k", longestPointer)
	for name, c := range map[string]struct {
		fields, merge fields
		vanishing     func(string) bool
		want          []Op
	}{
		"nothing":                         {fields{"a": 1}, fields{"a": 1, "b": nil}, all, nil},
		"add":                             {fields{}, fields{"a": 1}, all, []Op{{"add", "/a", 1}}},
		"replace":                         {fields{"a": 1}, fields{"a": 2}, all, []Op{{"replace", "/a", 2}}},
		"remove":                          {fields{"a": 1}, fields{"a": nil}, all, []Op{{"remove", "/a", nil}}},
		"sorted and escaped":              {fields{}, fields{"b~/": 2, "a": 1}, all, []Op{{"add", "/a", 1}, {"add", "/b~0~1", 2}}},
		"inside":                          {fields{"o": fields{"a": 1}}, fields{"o": fields{"b": 2}}, all, []Op{{"add", "/o/b", 2}}},
		"the last key":                    {fields{"o": fields{"a": 1}}, fields{"o": fields{"a": nil}}, all, []Op{{"remove", "/o", nil}}},
		"one of two keys":                 {fields{"o": fields{"a": 1, "b": 2}}, fields{"o": fields{"a": nil}}, all, []Op{{"remove", "/o/a", nil}}},
		"one key removed, one set":        {fields{"o": fields{"a": 1}}, fields{"o": fields{"a": nil, "b": 2}}, all, []Op{{"remove", "/o/a", nil}, {"add", "/o/b", 2}}},
		"the last key, and the map stays": {fields{"o": fields{"a": 1}}, fields{"o": fields{"a": nil}}, none, []Op{{"remove", "/o/a", nil}}},
		"a deletion in an empty map":      {fields{"o": fields{}}, fields{"o": fields{"a": nil}}, all, nil},
		"a new map without nulls":         {fields{}, fields{"o": fields{"a": nil, "b": 1}}, all, []Op{{"add", "/o", fields{"b": 1}}}},
		"a new map of nulls":              {fields{}, fields{"o": fields{"a": nil}}, none, nil},
		"a new empty map":                 {fields{}, fields{"o": fields{}}, none, []Op{{"add", "/o", fields{}}}},
		"a new empty map that vanishes":   {fields{}, fields{"o": fields{}}, all, nil},
		"a map replaces a value":          {fields{"o": 1}, fields{"o": fields{"a": 1}}, all, []Op{{"replace", "/o", fields{"a": 1}}}},
		"one change below a long key":     {fields{long: fields{"a": 1, "b": 2}}, fields{long: fields{"a": 3}}, all, []Op{{"replace", "/" + long + "/a", 3}}},
		"two changes below a long key":    {fields{long: fields{"a": 1, "b": 2, "c": 3}}, fields{long: fields{"a": 3, "b": nil}}, all, []Op{{"replace", "/" + long, fields{"a": 3, "c": 3}}}},
		"one change below an endless key": {fields{longest: fields{"a": 1, "b": 2}}, fields{longest: fields{"a": 3}}, all, []Op{{"replace", "/" + longest, fields{"a": 3, "b": 2}}}},
		"no change below a long key":      {fields{long: fields{"a": 1, "b": 2}}, fields{long: fields{"a": 1, "b": 2}}, all, nil},
	} {
		before := jsonvalue.Clone(c.fields)
		same(t, name, Ops(c.fields, c.merge, c.vanishing), c.want)
		same(t, name+": the object", any(c.fields), before)
	}
}

// Clients may write any number of annotations that the operator removes later. API servers refuse patches
// with more than 10,000 operations.
func TestManyChangesTakeFewOperations(t *testing.T) {
	keys := func(n int, value any) fields {
		all := fields{}
		for i := range n {
			all[fmt.Sprint("k", i)] = value
		}
		return all
	}
	maps := func(n, each int, value any) fields {
		all := fields{}
		for i := range n {
			all[fmt.Sprint("m", i)] = keys(each, value)
		}
		return all
	}
	annotated := keys(20_000, "x")
	annotated["other"] = "y"
	for name, c := range map[string]struct {
		fields, merge fields
		most          int
	}{
		"annotations":             {fields{"metadata": fields{"name": "a", "annotations": annotated}}, fields{"metadata": fields{"annotations": keys(20_000, nil)}}, 1},
		"new annotations":         {fields{"metadata": fields{"annotations": fields{"a": "b"}}}, fields{"metadata": fields{"annotations": keys(20_000, "c")}}, 1},
		"few annotations":         {fields{"metadata": fields{"annotations": annotated}}, fields{"metadata": fields{"annotations": keys(1000, nil)}}, 1000},
		"many maps in a field":    {fields{"spec": maps(100, 100, 1), "metadata": fields{"name": "a"}}, fields{"spec": maps(100, 100, 2)}, 1},
		"many maps in the object": {maps(100, 100, 1), maps(100, 100, nil), 100},
		"fields of the metadata":  {fields{"metadata": keys(2000, 1)}, fields{"metadata": keys(2000, 2)}, 2000},
	} {
		ops := Ops(c.fields, c.merge, func(string) bool { return true })
		if len(ops) > c.most {
			t.Errorf("%s: %d operations, want at most %d", name, len(ops), c.most)
		}
		raw, err := json.Marshal(ops)
		if err != nil {
			t.Fatal(err)
		}
		p, err := jsonpatch.DecodePatch(raw)
		if err != nil {
			t.Fatal(err)
		}
		before, err := json.Marshal(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		after, err := p.Apply(before)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := jsonvalue.Clone(map[string]any(c.fields)).(map[string]any)
		Apply(want, c.merge)
		wanted, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if !jsonpatch.Equal(after, wanted) && name != "many maps in the object" { // where empty maps vanish
			t.Errorf("%s: the result is another one", name)
		}
	}
}

func TestFinalizerOperations(t *testing.T) {
	for name, c := range map[string]struct {
		got  []Op
		want string
	}{
		"add the first":       {AddFinalizer(nil, "f"), `[{"op":"add","path":"/metadata/finalizers","value":["f"]}]`},
		"add another":         {AddFinalizer([]string{"x"}, "f"), `[{"op":"add","path":"/metadata/finalizers/-","value":"f"}]`},
		"already there":       {AddFinalizer([]string{"f"}, "f"), `null`},
		"remove the last":     {RemoveFinalizer([]string{"f", "f"}, "f"), `[{"op":"remove","path":"/metadata/finalizers"}]`},
		"remove from others":  {RemoveFinalizer([]string{"f", "x", "f"}, "f"), `[{"op":"remove","path":"/metadata/finalizers/2"},{"op":"remove","path":"/metadata/finalizers/0"}]`},
		"replace a former":    {AddFinalizer([]string{"x", "old", "y"}, "f", "older", "old"), `[{"op":"replace","path":"/metadata/finalizers/1","value":"f"}]`},
		"replace formers":     {AddFinalizer([]string{"a", "x", "b", "a"}, "f", "a", "b"), `[{"op":"replace","path":"/metadata/finalizers/0","value":"f"},{"op":"remove","path":"/metadata/finalizers/3"},{"op":"remove","path":"/metadata/finalizers/2"}]`},
		"there with a former": {AddFinalizer([]string{"old", "f"}, "f", "old"), `[{"op":"remove","path":"/metadata/finalizers/0"}]`},
		"remove with formers": {RemoveFinalizer([]string{"old", "x", "f"}, "f", "old"), `[{"op":"remove","path":"/metadata/finalizers/2"},{"op":"remove","path":"/metadata/finalizers/0"}]`},
		"remove all formers":  {RemoveFinalizer([]string{"old", "f"}, "f", "old"), `[{"op":"remove","path":"/metadata/finalizers"}]`},
		"remove very many":    {RemoveFinalizer(append(slices.Repeat([]string{"f"}, 20_000), "x"), "f"), `[{"op":"replace","path":"/metadata/finalizers","value":["x"]}]`},
		"not there":           {RemoveFinalizer([]string{"x"}, "f"), `null`},
		"only this version":   {[]Op{Unchanged("7")}, `[{"op":"test","path":"/metadata/resourceVersion","value":"7"}]`},
	} {
		raw, err := json.Marshal(c.got)
		if err != nil || string(raw) != c.want {
			t.Errorf("%s: got %s, %v, want %s", name, raw, err, c.want)
		}
	}
}

func TestPartsOfTheSameTypeAreOneEdit(t *testing.T) {
	add := func(fields map[string]any, parts []any) {
		for _, part := range parts {
			fields["order"] = append(fields["order"].([]any), part)
		}
		fields["calls"] = fields["calls"].(int64) + 1
	}
	p := &Patch{}
	p.Join("a", add)
	p.Join("b", add)
	p.Join(1, add)
	p.Edit(func(fields map[string]any) { fields["order"] = append(fields["order"].([]any), "edit") })
	p.Join(2, add)
	first := p.OnlyEdits()
	p.Join(3, add)
	other := &Patch{}
	other.Join(4, add)
	p.Absorb(other)
	other.Join(5, add)
	p.Join(6, add)
	object := func() map[string]any { return map[string]any{"order": []any{}, "calls": int64(0)} }
	same(t, "all", p.Fold(object), map[string]any{"order": []any{"a", "b", 1, "edit", 2, 3, 4, 6}, "calls": int64(6)})
	same(t, "the first", first.Fold(object), map[string]any{"order": []any{"a", "b", 1, "edit", 2}, "calls": int64(3)})
}

func TestTheOldestEditsAreDropped(t *testing.T) {
	noPart := func(map[string]any, []any) {}
	for _, c := range []struct {
		parts   []int // of each edit; 0 means an edit without parts
		n, left int
	}{
		{nil, 2, 0}, {[]int{0, 0}, 2, 2}, {[]int{0, 0, 0}, 2, 2}, {[]int{5}, 2, 1}, {[]int{0, 5}, 2, 1}, {[]int{5, 0, 0}, 2, 2}, {[]int{2, 0}, 3, 2}, {[]int{2, 2}, 3, 1},
	} {
		p := &Patch{}
		for i, parts := range c.parts {
			if parts == 0 {
				p.Edit(func(map[string]any) {})
			}
			for range parts {
				if i%2 == 0 {
					p.Join("", noPart)
				} else {
					p.Join(0, noPart)
				}
			}
		}
		if dropped := p.KeepEdits(c.n); dropped != (c.left < len(c.parts)) || len(p.edits) != c.left || len(p.parts) != c.left {
			t.Errorf("%v: %d edits are left, want %d; dropped: %v", c.parts, len(p.edits), c.left, dropped)
		}
	}
}
