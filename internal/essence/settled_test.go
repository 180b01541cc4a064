package essence_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/test/scaling"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

// noted returns the object with its essence stored as the base.
func noted(t testing.TB, text string) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	now := essence.Build(fields, nil)
	essence.Clean(storagetest.Body(fields), now, storage.DefaultBase(), storage.DefaultProgress())
	encoded, err := storage.EncodeEssence(now)
	if err != nil {
		t.Fatal(err)
	}
	metadata := fields["metadata"].(map[string]any)
	if metadata["annotations"] == nil {
		metadata["annotations"] = map[string]any{}
	}
	metadata["annotations"].(map[string]any)["kopf.zalando.org/last-handled-configuration"] = encoded + "\n"
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestSettledObjectsAreRecognizedByTheirBytes(t *testing.T) {
	t.Parallel()
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	for name, text := range map[string]string{
		"plain":                `{"apiVersion":"v1","kind":"X","metadata":{"name":"n","uid":"u"},"spec":{"a":[1,2.5,null,true],"b":"c"},"status":{"x":1}}`,
		"labels":               `{"metadata":{"labels":{"a":"b"}},"data":{"k":"v"},"spec":{}}`,
		"null labels":          `{"metadata":{"labels":null,"name":"n"},"spec":{}}`,
		"an own mark":          `{"metadata":{"annotations":{"kopf.zalando.org/kopf-managed":"yes"}},"spec":1}`,
		"only annotations":     `{"metadata":{"annotations":{"a":"b"}}}`,
		"empty labels":         `{"metadata":{"labels":{},"name":"n"},"spec":{}}`,
		"annotations":          `{"metadata":{"annotations":{"note":"keep","z/y":"x","kubectl.kubernetes.io/last-applied-configuration":"{}"},"labels":{"a":"b"}},"spec":1}`,
		"other operators'":     `{"metadata":{"annotations":{"my.kopf.zalando.org/fn":"{}"}},"spec":1}`,
		"escapes":              `{"metadata":{"name":"n"},"spec":{"text":"<a> & \"b\" \\ ü 😀 \n"}}`,
		"odd order":            `{"spec":{"z":1,"a":{"y":2,"b":3}},"metadata":{"name":"n"},"data":{"k":1}}`,
		"nothing":              `{"metadata":{"name":"n"}}`,
		"large integers":       `{"metadata":{"name":"n"},"spec":{"n":9007199254740993}}`,
		"finalizers":           `{"metadata":{"finalizers":["f"]},"spec":1}`,
		"a similar status key": `{"metadata":{"name":"n"},"spec":1,"status":{"kopfs":1}}`,
	} {
		raw := noted(t, text)
		if name == "large integers" {
			raw = []byte(strings.ReplaceAll(string(raw), "9007199254740992", "9007199254740993"))
		}
		if !g.Run(raw).Settled {
			t.Errorf("%s: not settled: %s", name, raw)
		}
	}
}

func TestChangedObjectsAreNotSettled(t *testing.T) {
	t.Parallel()
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	base := `{"metadata":{"name":"n","labels":{"a":"b"},"annotations":{"note":"x"}},"spec":{"a":1,"b":9007199254740993}}`
	for name, change := range map[string][2]string{
		"spec":             {`"spec":{"a":1`, `"spec":{"a":2`},
		"an integer":       {`"b":9007199254740992}`, `"b":9007199254740993}`},
		"a label":          {`"labels":{"a":"b"}`, `"labels":{"a":"c"}`},
		"no labels":        {`"labels":{"a":"b"},`, ``},
		"an annotation":    {`"note":"x"`, `"note":"y"`},
		"a new annotation": {`"note":"x"`, `"note":"x","z":"y"`},
		"progress":         {`"note":"x"`, `"note":"x","kopf.zalando.org/fn":"{}"`},
		"a touch":          {`"note":"x"`, `"note":"x","kopf.zalando.org/touch-dummy":"1"`},
		"progress, status": {`"spec":`, `"status":{"kopf":{"progress":{"fn":{}}}},"spec":`},
		"another stanza":   {`"spec":`, `"more":1,"spec":`},
		"another operator": {`"note":"x"`, `"note":"x","other.op/kopf-managed":"yes"`},
		"no base":          {`last-handled-configuration`, `something-else`},
		"no end":           {`"spec":{"a":1,"b":9007199254740992}}`, `"spec":{"a":1,"b":9007199254740992}`},
		"an escaped key":   {`"note":"x"`, `"not\u0065":"x"`},
		"a base as number": {`"kopf.zalando.org/last-handled-configuration":"`, `"kopf.zalando.org/last-handled-configuration":1,"z":"`},
		"truncated":        {`"spec":{"a":1`, `"spec":{"a":`},
	} {
		raw := noted(t, base)
		changed := strings.Replace(string(raw), change[0], change[1], 1)
		if changed == string(raw) {
			t.Fatalf("%s: nothing was changed in %s", name, raw)
		}
		if g.Run([]byte(changed)).Settled {
			t.Errorf("%s: settled: %s", name, changed)
		}
	}
	if g.Run(nil).Settled || g.Run([]byte(`[]`)).Settled {
		t.Error("an empty text or an array is settled")
	}
}

// Many levels, each in the wrong order, would take long to sort.
func TestABaseOfTooManyLevelsIsNotSorted(t *testing.T) {
	t.Parallel()
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	for levels, settled := range map[int]bool{31: true, 32: false, 900: false, 9_900: false} {
		spec := func(first, last string) string {
			return strings.Repeat("{"+first, levels) + "0" + strings.Repeat(last+"}", levels)
		}
		base, err := json.Marshal(`{"spec":` + spec(`"b":0,"a":`, "") + `}`)
		if err != nil {
			t.Fatal(err)
		}
		raw := `{"metadata":{"annotations":{"kopf.zalando.org/last-handled-configuration":` + string(base) + `}},"spec":` + spec(`"a":`, `,"b":0`) + `}`
		if g.Run([]byte(raw)).Settled != settled {
			t.Errorf("%d levels: settled is %v", levels, !settled)
		}
	}
}

// An API server sorts the members of objects by UTF-8, and the members of a base are sorted by
// UTF-16. So a tenant can write an object in which each level has another order.
func TestTheTestOfAnObjectOfManyLevelsTakesLinearTime(t *testing.T) {
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	scaling.Check(t, 60, func(levels int) {
		raw := `{"metadata":{"annotations":{"kopf.zalando.org/last-handled-configuration":"{}\n"}},"spec":` +
			strings.Repeat("{\"\ue000\":", levels) + `"` + strings.Repeat("x", levels<<10) + `"` + strings.Repeat(",\"\U00010000\":0}", levels) + `}`
		if g.Run([]byte(raw)).Settled {
			t.Error("settled, with another base")
		}
	})
}

func TestCopiesAreNotSettled(t *testing.T) {
	t.Parallel()
	raw := string(noted(t, `{"metadata":{"name":"n","uid":"u-1","annotations":{"note":"x"}},"spec":1}`))
	for bound, settled := range map[string]bool{
		"u-1.01234567": true, "u-2.01234567": false, "u-11.01234567": false, "u-1": false, "u-.01234567": false, "": false,
	} {
		raw := []byte(strings.Replace(raw, `"note":"x"`, `"note":"x","kopf.zalando.org/gopf.bound":"`+bound+`"`, 1))
		g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
		if got := g.Run(raw).Settled; got != settled {
			t.Errorf("%q: settled %v", bound, got)
		}
		g.TrustCopies = true
		if !g.Run(raw).Settled {
			t.Errorf("%q: not settled, although copies are trusted", bound)
		}
	}
}

// An id of one character is an id; an empty one is none.
func TestACopyIsRecognizedByTheWholeUID(t *testing.T) {
	t.Parallel()
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	for uid, settled := range map[string]bool{`"uid":"u",`: true, `"uid":"",`: false, ``: false} {
		raw := noted(t, `{"metadata":{"name":"n","annotations":{"note":"x"}},"spec":1}`)
		bound := strings.TrimSuffix(strings.TrimPrefix(uid, `"uid":"`), `",`) + ".01234567"
		text := strings.Replace(string(raw), `"note":"x"`, `"note":"x","kopf.zalando.org/gopf.bound":"`+bound+`"`, 1)
		text = strings.Replace(text, `"name":"n"`, uid+`"name":"n"`, 1)
		if got := g.Run([]byte(text)).Settled; got != settled {
			t.Errorf("settled is %v: %s", got, text)
		}
	}
}

func TestASettledTestReturnsTheFinalizers(t *testing.T) {
	t.Parallel()
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	for text, want := range map[string]string{
		`{"metadata":{"finalizers":["f","g"],"name":"n"},"spec":1}`: `["f","g"]`,
		`{"metadata":{"name":"n"},"spec":1}`:                        ``,
	} {
		if got := g.Run(noted(t, text)); !got.Settled || string(got.Finalizers) != want {
			t.Errorf("%s: got %s, settled %v", text, got.Finalizers, got.Settled)
		}
	}
}

// With storages of an operator's own prefix, the state of Kopf belongs to another operator.
func TestStateOfOtherOperatorsIsNotPartOfTheEssence(t *testing.T) {
	t.Parallel()
	base, progress := storage.NewAnnotationBase("my.op"), storage.NewAnnotationProgress("my.op")
	g := essence.NewSettledTest(base, progress)
	for annotations, settled := range map[string]bool{
		``:                               true,
		`,"kopf.zalando.org/fn":"{}"`:    true,
		`,"my.kopf.zalando.org/fn":"{}"`: true,
		`,"my.op/kopf-managed":"yes"`:    true,
		`,"my.op/fn":"{}"`:               false,
		`,"xkopf.zalando.org/fn":"{}"`:   false,
		`,"other.op/fn":"{}"`:            false,
		`,"kopf.zalando.org":"x"`:        false,
	} {
		raw := `{"metadata":{"annotations":{"my.op/last-handled-configuration":"{\"spec\":1}\n"` + annotations + `}},"spec":1}`
		if got := g.Run([]byte(raw)).Settled; got != settled {
			t.Errorf("settled is %v: %s", got, raw)
		}
	}
}

// An operator with former names finds settled objects under all of them, but decodes
// objects with state under two names.
func TestObjectsAreSettledUnderFormerNames(t *testing.T) {
	t.Parallel()
	g := essence.NewSettledTest(
		storage.MovedBase(storage.NewAnnotationBase("new.example.com"), storage.NewAnnotationBase(storage.DefaultPrefix)),
		storage.MovedProgress(storage.NewAnnotationProgress("new.example.com"), storage.DefaultProgress()))
	raw := string(noted(t, `{"metadata":{"name":"n","uid":"u-1","annotations":{"note":"x"}},"spec":1}`))
	const former, noteX = "kopf.zalando.org/last-handled", `"note":"x"`
	for name, c := range map[string]struct {
		change  [2]string
		settled bool
	}{
		"the former name":                 {[2]string{}, true},
		"the present name":                {[2]string{former, "new.example.com/last-handled"}, true},
		"a third name":                    {[2]string{former, "old.example.com/last-handled"}, false},
		"both names":                      {[2]string{noteX, noteX + `,"new.example.com/last-handled-configuration":"{}"`}, false},
		"its binding":                     {[2]string{noteX, noteX + `,"kopf.zalando.org/gopf.bound":"u-1.01234567"`}, true},
		"the binding of another object":   {[2]string{noteX, noteX + `,"kopf.zalando.org/gopf.bound":"u-2.01234567"`}, false},
		"the binding of the present name": {[2]string{noteX, noteX + `,"new.example.com/gopf.bound":"u-1.01234567"`}, false},
		"a record of the former name":     {[2]string{noteX, noteX + `,"kopf.zalando.org/fn":"{}"`}, false},
		"a record of the present name":    {[2]string{noteX, noteX + `,"new.example.com/fn":"{}"`}, false},
		"the marker of the present name":  {[2]string{noteX, noteX + `,"new.example.com/kopf-managed":"yes"`}, true},
		"a change":                        {[2]string{`"spec":1`, `"spec":2`}, false},
	} {
		changed := strings.Replace(raw, c.change[0], c.change[1], 1)
		if c.change[0] != "" && changed == raw {
			t.Fatalf("%s: nothing was changed in %s", name, raw)
		}
		if got := g.Run([]byte(changed)).Settled; got != c.settled {
			t.Errorf("%s: settled %v: %s", name, got, changed)
		}
	}
}

func TestOnlyKnownStoragesAllowASettledTest(t *testing.T) {
	t.Parallel()
	ignoring := storage.NewAnnotationBase("my.op")
	ignoring.Ignored = [][]string{{"spec", "replicas"}}
	elsewhere := storage.NewStatusProgress("kopf")
	elsewhere.Field = []string{"spec", "progress"}
	for name, c := range map[string]struct {
		base     storage.Base
		progress storage.Progress
	}{
		"ignored fields":   {ignoring, storage.DefaultProgress()},
		"status":           {storage.NewStatusBase("kopf"), storage.DefaultProgress()},
		"several":          {storage.MultiBase(storage.DefaultBase(), storage.NewStatusBase("kopf")), storage.DefaultProgress()},
		"progress in spec": {storage.DefaultBase(), elsewhere},
	} {
		if essence.NewSettledTest(c.base, c.progress) != nil {
			t.Errorf("%s: got a test, want nil", name)
		}
	}
}

// inStatus returns an object as an operator with its state in the status leaves it.
func inStatus(t testing.TB, text string) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(noted(t, text), &fields); err != nil {
		t.Fatal(err)
	}
	annotations := fields["metadata"].(map[string]any)["annotations"].(map[string]any)
	status, _ := fields["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	status["things"] = map[string]any{"last-handled-configuration": strings.TrimSpace(annotations["kopf.zalando.org/last-handled-configuration"].(string))}
	delete(annotations, "kopf.zalando.org/last-handled-configuration")
	fields["status"] = status
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func stateTest(inStatus bool) *essence.SettledTest {
	progress, base := storage.NewStatusState("things", []string{"old"}, storage.DefaultProgress(), storage.DefaultBase()).Storages(inStatus)
	return essence.NewSettledTest(base, progress)
}

func TestObjectsAreSettledWithTheirStateInTheStatus(t *testing.T) {
	t.Parallel()
	raw := string(inStatus(t, `{"metadata":{"name":"n","uid":"u-1","annotations":{"note":"x"}},"spec":1,"status":{"a":{"things":1}}}`))
	const (
		note  = `"note":"x"`
		key   = `"things":{`
		kopfs = `,"kopf.zalando.org/last-handled-configuration":"{\"spec\":{\"a\":1}}"`
	)
	for name, c := range map[string]struct {
		change  [2]string
		settled bool
	}{
		"unchanged":                      {[2]string{}, true},
		"a change":                       {[2]string{`"spec":1`, `"spec":2`}, false},
		"a new annotation":               {[2]string{note, note + `,"b":"c"`}, false},
		"no records":                     {[2]string{key, key + `"progress":{},`}, true},
		"null instead of records":        {[2]string{key, key + `"progress":null,`}, true},
		"a record":                       {[2]string{key, key + `"progress":{"fn":{}},`}, false},
		"a touch of Kopf":                {[2]string{key, key + `"dummy":"2020",`}, true},
		"a base that is not a text":      {[2]string{`"last-handled-configuration":`, `"last-handled-configuration":{},"x":`}, false},
		"a state without a base":         {[2]string{`"last-handled-configuration"`, `"x"`}, false},
		"a former key":                   {[2]string{key, `"old":{},` + key}, false},
		"another key":                    {[2]string{key, `"another":{},` + key}, true},
		"an escaped key":                 {[2]string{key, `"th\u0069ngs":{},` + key}, false},
		"two states":                     {[2]string{key, `"things":{"last-handled-configuration":"{}"},` + key}, false},
		"the state is a list":            {[2]string{key, `"things":[],"y":{`}, false},
		"a base in annotations":          {[2]string{note, note + kopfs}, false},
		"a record in annotations":        {[2]string{note, note + `,"kopf.zalando.org/fn":"{}"`}, false},
		"the binding of another object":  {[2]string{note, note + `,"kopf.zalando.org/gopf.bound":"u-2.01234567"`}, true},
		"a status of another type":       {[2]string{`"status":{`, `"status":[],"x":{`}, false},
		"the marker of another operator": {[2]string{note, note + `,"x.io/kopf-managed":"yes"`}, false},
	} {
		changed := strings.Replace(raw, c.change[0], c.change[1], 1)
		if c.change[0] != "" && changed == raw {
			t.Fatalf("%s: nothing was changed in %s", name, raw)
		}
		if got := stateTest(true).Run([]byte(changed)).Settled; got != c.settled {
			t.Errorf("%s: settled %v: %s", name, got, changed)
		}
	}
	moved := strings.Replace(strings.Replace(raw, note, note+kopfs, 1), key, key+`"moved":"1613b96f",`, 1)
	if !stateTest(true).Run([]byte(moved)).Settled || stateTest(true).Run([]byte(strings.Replace(moved, "1613b96f", "1613b960", 1))).Settled {
		t.Errorf("an object is settled only if its annotations are those of the move: %s", moved)
	}
	annotated := noted(t, `{"metadata":{"name":"n"},"spec":1,"status":{"x":1}}`)
	for _, in := range []bool{true, false} {
		if !stateTest(in).Run(annotated).Settled {
			t.Errorf("in the status %t: state in annotations is not settled", in)
		}
	}
	if stateTest(false).Run([]byte(raw)).Settled {
		t.Error("state in the status counts without being decoded, although it must be moved")
	}
}

// TestSettledTestsDecodeNothing holds in both places: they run for every object at a
// restart. Decoding an object takes hundreds of allocations.
func TestSettledTestsDecodeNothing(t *testing.T) {
	annotations := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	for name, c := range map[string]struct {
		test *essence.SettledTest
		raw  []byte
	}{"annotations": {annotations, noted(t, typical)}, "status": {stateTest(true), inStatus(t, typical)}} {
		n := testing.AllocsPerRun(100, func() {
			if !c.test.Run(c.raw).Settled {
				t.Fatal("not settled")
			}
		})
		if n > 5 { // the pool of buffers may be emptied; the race detector does so at random
			t.Errorf("%s: %.1f allocations", name, n)
		}
	}
}

const typical = `{"apiVersion":"bench.gopf.dev/v1","kind":"Widget","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,
	"labels":{"app":"bench"},"name":"o-0000001","namespace":"default","resourceVersion":"12345","uid":"00000000-0000-4000-8000-000000000001"},
	"spec":{"group":"g","payload":[{"name":"entry-0","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"},
	{"name":"entry-1","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"},
	{"name":"entry-2","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"},
	{"name":"entry-3","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"},
	{"name":"entry-4","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"},
	{"name":"entry-5","value":"volume1 claim2 namespace3 replica4 image5 port6 secret7 mount8 probe9"}],"size":1,"stamp":0},
	"status":{"create":{"message":"created","size":1}}}`

func BenchmarkSettledTest(b *testing.B) {
	g := essence.NewSettledTest(storage.DefaultBase(), storage.DefaultProgress())
	state := stateTest(true)
	for name, c := range map[string]struct {
		test *essence.SettledTest
		raw  []byte
	}{
		"same bytes":    {g, noted(b, typical)},
		"same meaning":  {g, noted(b, strings.Replace(typical, "volume1", "völume", 1))},
		"in the status": {state, inStatus(b, typical)},
		"a new object":  {state, []byte(typical)},
	} {
		g, raw := c.test, c.raw
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Run(raw).Settled != (name != "a new object") {
					b.Fatal("the result is wrong")
				}
			}
		})
	}
}

// BenchmarkCompare measures the work that SettledTest saves: decoding and comparing.
func BenchmarkCompare(b *testing.B) {
	raw := noted(b, typical)
	base, progress := storage.DefaultBase(), storage.DefaultProgress()
	b.ReportAllocs()
	for b.Loop() {
		body, err := object.Parse(raw)
		if err != nil {
			b.Fatal(err)
		}
		o := storagetest.Body(body.Map())
		if _, found, err := base.Load(b.Context(), o); !found || err != nil {
			b.Fatal(err)
		}
		essence.Clean(o, essence.Build(body.Map(), nil), base, progress)
	}
}
