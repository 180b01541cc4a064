package footprint

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"gopf.dev/gopf/internal/test/scaling"
)

type tree struct {
	Name     string  `json:"name"`
	Children []tree  `json:"children"`
	Parent   *tree   `json:"parent"`
	Others   []*tree `json:"others"`
	big
}

type big struct {
	Filler [100]int       `json:"filler"`
	Named  map[string]big `json:"named"`
}

type jobs struct {
	metav1.ObjectMeta `json:"metadata"`
	Jobs              []batchv1.JobTemplateSpec   `json:"jobs"`
	ByName            map[string]corev1.Container `json:"byName"`
	Pointers          []*corev1.Container         `json:"pointers"`
	Limits            []resource.Quantity         `json:"limits"`
	Times             []metav1.Time               `json:"times"`
	Durations         []time.Duration             `json:"durations"`
	Any               any                         `json:"any"`
	Anys              []any                       `json:"anys"`
	Fields            map[string]any              `json:"fields"`
	Texts             []string                    `json:"texts"`
	Numbers           [][]int                     `json:"numbers"`
	Bytes             []byte                      `json:"bytes"`
	Tree              tree                        `json:"tree"`
	Skipped           []corev1.PodSpec            `json:"-"`
	hidden            []corev1.PodSpec            //nolint:unused // it must not count
}

// list returns a JSON list with the value n times.
func listOf(value string, n int) string { return "[" + strings.Repeat(value+",", n-1) + value + "]" }

// members returns a JSON object with the value under n names.
func members(value string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"k%d":%s`, i, value)
	}
	return "{" + b.String()[1:] + "}"
}

// allocated returns the memory that decoding takes.
func allocated(t *testing.T, of reflect.Type, text string) int {
	t.Helper()
	into := reflect.New(of).Interface()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), into)
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func TestEstimatesAreNearTheAllocatedMemory(t *testing.T) {
	const n = 3000
	for _, text := range []string{
		`{"jobs":` + listOf(`{}`, n) + `}`,
		`{"jobs":` + listOf(`null`, n) + `}`,
		`{"jobs":` + listOf(`{"spec":{"template":{"spec":{"containers":[{},{}]}}}}`, n/10) + `}`,
		`{"pointers":` + listOf(`{}`, n) + `}`,
		`{"byName":` + members(`{}`, n) + `}`,
		`{"byName":` + members(`{"env":[{"valueFrom":{"fieldRef":{}}}]}`, n/10) + `}`,
		`{"tree":{"children":` + listOf(`{}`, n) + `}}`,
		`{"tree":` + strings.Repeat(`{"parent":`, 500) + `{}` + strings.Repeat("}", 500) + `}`,
		`{"tree":{"others":` + listOf(`{"others":[{},{}]}`, n) + `}}`,
		`{"tree":{"named":` + members(`{"named":{"a":{}}}`, n/10) + `}}`,
		`{"any":` + listOf(`{}`, n) + `}`,
		`{"any":` + listOf(`{"a":1}`, n) + `}`,
		`{"anys":` + listOf(`{"a":[1,"b"]}`, n) + `}`,
		`{"fields":` + members(`{"a":1}`, n) + `}`,
		`{"texts":` + listOf(`"some text"`, n) + `}`,
		`{"numbers":` + listOf(`[1,2]`, n) + `}`,
		`{"limits":` + listOf(`"1Gi"`, n) + `}`,
		`{"times":` + listOf(`"2026-01-01T00:00:00Z"`, n) + `}`,
		`{"metadata":{"ownerReferences":` + listOf(`{}`, n) + `,"labels":` + members(`"x"`, n) + `}}`,
	} {
		got, used := Of(reflect.TypeFor[*jobs]()).Memory([]byte(text), 0), allocated(t, reflect.TypeFor[jobs](), text)
		if got < used*2/3 || got > 5*used {
			t.Errorf("%.60s: estimated %d, allocated %d bytes", text, got, used)
		}
	}
}

// defaulting sets defaults, as many types do.
type defaulting struct {
	Port int                       `json:"port"`
	Jobs []batchv1.JobTemplateSpec `json:"jobs"`
	More []defaulting              `json:"more"`
	Any  []dynamically             `json:"any"`
}

func (d *defaulting) UnmarshalJSON(text []byte) error {
	type plain defaulting
	with := plain{Port: 80}
	err := json.Unmarshal(text, &with)
	*d = defaulting(with)
	return err
}

// dynamically is decoded into maps.
type dynamically struct{ fields map[string]any }

func (d *dynamically) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &d.fields) }

func TestTypesThatDecodeThemselvesAreEstimated(t *testing.T) {
	const n = 3000
	for _, text := range []string{
		`{"jobs":` + listOf(`{}`, n) + `}`,
		`{"more":` + listOf(`{"jobs":[{},{}]}`, n) + `}`,
		`{"any":` + listOf(`{"a":{}}`, n) + `}`,
		strings.Repeat(`{"more":[`, 50) + `{"jobs":` + listOf(`{}`, n) + `}` + strings.Repeat("]}", 50),
	} {
		got, used := Of(reflect.TypeFor[*defaulting]()).Memory([]byte(text), 1), allocated(t, reflect.TypeFor[defaulting](), text)
		if got < used*2/3 {
			t.Errorf("%.60s: estimated %d, allocated %d bytes", text, got, used)
		}
	}
	if err := Of(reflect.TypeFor[*defaulting]()).Check([]byte(`{"jobs":` + listOf(`{}`, 60_000) + `}`)); err == nil {
		t.Error("180 KB that take 400 MB are decoded")
	}
}

type left struct{ *right }

type right struct {
	*left          //nolint:unused // it makes the type contain itself
	Names []string `json:"names"`
}

func TestStructsMayEmbedEachOther(t *testing.T) {
	if got := Of(reflect.TypeFor[*left]()).Memory([]byte(`{"names":["a","b"]}`), 0); got < 2*3*16 {
		t.Errorf("%d bytes", got)
	}
}

// Other fields are not decoded.
// The decoder does not refuse all of them, and a review has other objects.
func TestTextsThatAreNotDecodedHideNoMemory(t *testing.T) {
	of := Of(reflect.TypeFor[*jobs]())
	many := `"jobs":` + listOf("{}", 5000)
	want := of.Memory([]byte("{"+many+"}"), 0)
	for _, text := range []string{`"limits":["1e9999"],`, `"times":["` + strings.Repeat("x", 70_000) + `"],`} {
		if got := of.Memory([]byte("{"+text+many+"}"), 0); got < want {
			t.Errorf("with %.20s: got %d bytes, want at least %d", text, got, want)
		}
	}
}

func TestOtherFieldsTakeNoMemory(t *testing.T) {
	of := Of(reflect.TypeFor[*jobs]())
	least := of.Memory([]byte(`{}`), -1)
	for _, text := range []string{
		`{"Skipped":` + listOf(`{}`, 1000) + `,"hidden":` + listOf(`{}`, 1000) + `,"other":` + listOf(`{}`, 1000) + `}`,
		`{"jobs":` + members(`{}`, 1000) + `,"byName":` + listOf(`{}`, 1000) + `,"texts":{"a":[{}]},"durations":"x"}`,
		`{"JOBS":` + listOf(`{}`, 1000) + `}`, // names are case-sensitive
	} {
		if got := of.Memory([]byte(text), 0); got > least+100 {
			t.Errorf("%.60s: %d bytes", text, got)
		}
	}
	if got := of.Memory([]byte(`{"jobs":[{},`), 0); got != 0 {
		t.Errorf("incomplete JSON takes %d bytes", got)
	}
}

func TestOrdinaryObjectsAreNotRead(t *testing.T) {
	text := []byte(`{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.27",
		"ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],"resources":{"limits":{"cpu":"1"}}}]}}},"status":{"conditions":[{},{}]}}`)
	of := Of(reflect.TypeFor[*appsv1.Deployment]())
	if got := of.Memory(text, 1<<20); got != 0 {
		t.Errorf("%d bytes", got)
	}
	if n := testing.AllocsPerRun(100, func() { of.Memory(text, 1<<20) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The shortcut is never smaller than the whole estimate.
func TestTheLimitDecidesAsTheEstimate(t *testing.T) {
	of := Of(reflect.TypeFor[*jobs]())
	for n := 1; n < 200; n += 7 {
		for _, text := range []string{
			`{"jobs":` + listOf(`{}`, n) + `}`, `{"jobs":` + listOf(`null`, n) + `}`, `{"pointers":` + listOf(`{}`, n) + `}`, `{"tree":{"others":` + listOf(`{}`, n) + `}}`,
			`{"byName":` + members(`{}`, n) + `}`, `{"anys":` + listOf(`{}`, n) + `}`, `{"numbers":` + listOf(`[]`, n) + `}`, `{"limits":` + listOf(`"1"`, n) + `}`,
		} {
			memory := of.Memory([]byte(text), 0)
			for _, limit := range []int{1 << 10, 1 << 14, 1 << 16, 1 << 18, 1 << 20} {
				if got := of.Memory([]byte(text), limit); got == 0 && memory-of.size-64 > limit {
					t.Errorf("%.40s with %d elements: %d bytes are less than %d", text, n, memory, limit)
				}
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                    "",
		`{"jobs":` + listOf(`{}`, 1000) + `}`:   "",
		`{"jobs":` + listOf(`{}`, 20_000) + `}`: "it would take about",
		`{"limits":["1","1Gi","1e3","1E3","1e-3","-1.5e+300","100m"]}`: "",
		`{"limits":["1e9999"]}`:                                                                 "more than 3 digits",
		`{"limits":[1e9999]}`:                                                                   "more than 3 digits",
		`{"limits":["1E-10000000"]}`:                                                            "more than 3 digits",
		`{"limits":["1.e+10000000"]}`:                                                           "more than 3 digits",
		`{"limits":["` + strings.Repeat("1", 100) + `"]}`:                                       "more than 64 characters",
		`{"limits":["0.` + strings.Repeat("1", 100) + `"]}`:                                     "more than 64 characters",
		`{"texts":["1e9999","` + strings.Repeat("1", 100) + `"]}`:                               "",
		`{"jobs":[{"spec":{"template":{"spec":{"overhead":{"cpu":"1e9999"}}}}}]}`:               "more than 3 digits",
		`{"byName":{"a":{"resources":{"limits":{"cpu":"1","memory":"12345e12345"}}}}}`:          "more than 3 digits",
		`{"byName":{"a":{"resources":{"limits":{"cpu":"1e` + strings.Repeat("0", 70) + `"}}}}}`: "more than 64 characters",
		`{"times":["` + strings.Repeat("é", 40_000) + `"]}`:                                     "more than 256 characters",
		`{"metadata":{"creationTimestamp":"` + strings.Repeat("é", 40_000) + `"}}`:              "more than 256 characters",
		`{"times":["2026-01-01T00:00:00Z"],"texts":["` + strings.Repeat("é", 40_000) + `"]}`:    "",
	} {
		err := Of(reflect.TypeFor[*jobs]()).Check([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

func BenchmarkDeployment(b *testing.B) {
	text := []byte(`{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.27",
		"ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],"resources":{"limits":{"cpu":"1"}}}]}}},"status":{"conditions":[{},{}]}}`)
	of := Of(reflect.TypeFor[*appsv1.Deployment]())
	b.ReportAllocs()
	for b.Loop() {
		of.Memory(text, 0)
	}
}

// nested decodes itself, and contains itself.
type nested struct {
	Of   *nested
	Text string
}

func (n *nested) UnmarshalJSON([]byte) error { return nil }

// Types such as JSON schemas contain themselves. The estimate is made where a watch is read.
func TestTheEstimateOfNestedTypesTakesLinearTime(t *testing.T) {
	of := Of(reflect.TypeFor[nested]())
	scaling.Check(t, 60, func(levels int) {
		text := strings.Repeat(`{"Of":`, levels) + `{"Text":"` + strings.Repeat("{", levels<<10) + `"}` + strings.Repeat("}", levels)
		if of.Memory([]byte(text), 1<<10) < len(text) {
			t.Error("the text takes no memory")
		}
	})
}

// Clients can write any value where a handler decodes one without asking for memory.
func TestValuesInflateIfTheyTakeFarMoreMemoryThanTheirJSON(t *testing.T) {
	of := Of(reflect.TypeFor[[]corev1.Container]())
	filled := `{"name":"a","image":"b","args":["c"]}`
	for _, c := range []struct {
		name, json string
		known      int
		want       bool
	}{
		{"few nulls", listOf("null", 40), 0, false},
		{"many nulls", listOf("null", 4000), 0, true},
		{"as many as the object has", listOf("null", 4000), of.Memory([]byte(listOf("null", 5000)), 0), false},
		{"more than the object has", listOf("null", 4000), of.Memory([]byte(listOf("null", 3000)), 0), true},
		{"usual values", listOf(filled, 4000), 0, false},
		{"some nulls among them", "[" + listOf("null", 100) + "," + listOf(filled, 4000)[1:], 0, false},
	} {
		if got := of.Inflates([]byte(c.json), c.known); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

type sparse struct {
	Plain, Names []flags                `json:",omitempty"`
	Pointers     []*flags               `json:"pointers,omitempty"`
	ByName       map[string]flags       `json:"byName,omitempty"`
	Lists        [][]flags              `json:"lists,omitempty"`
	Short        []short                `json:"short,omitempty"`
	Again        []sparse               `json:"again,omitempty"`
	Quantities   []resource.Quantity    `json:"quantities,omitempty"`
	Times        []time.Time            `json:"times,omitempty"`
	Pods         []corev1.Pod           `json:"pods,omitempty"`
	Ports        []corev1.ContainerPort `json:"ports,omitempty"`
}

type flags struct {
	First, Second, Third bool
	Names                []string
	Inner                struct {
		Number int     `json:"number"`
		Array  [3]bool `json:"array"`
		short
	} `json:"inner,omitempty"`
}

type short struct {
	Text  string   `json:"text,omitempty"`
	Value *flags   `json:"value,omitempty"`
	Zero  struct{} `json:"zero,omitzero"`
	None  string   `json:"-"`
}

// A list of nulls becomes much longer if its structs have all fields.
func TestTheLengthOfJSONThatIsEncodedAgain(t *testing.T) {
	of := Of(reflect.TypeFor[sparse]())
	for _, member := range []string{"Plain", "pointers", "lists", "short", "again", "quantities", "times", "pods", "ports"} {
		for _, value := range []string{"null", "{}", "[null,{}]", `{"first":true,"inner":{"value":{}}}`, `{"value":{}}`, `{"plain":[null]}`, `"1"`} {
			text := fmt.Sprintf(`{%q:%s}`, member, listOf(value, 1000))
			var decoded sparse
			if kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &decoded) != nil {
				continue // does not fit
			}
			again, err := json.Marshal(decoded)
			if err != nil {
				t.Fatal(err)
			}
			got := of.encoded([]byte(text))
			if got < len(again) || got > len(text)+2*len(again)+of.zero {
				t.Errorf("%s of %s: %d bytes are estimated as %d", member, value, len(again), got)
			}
		}
	}
	text := `{"byName":` + members("null", 1000) + "}"
	var decoded sparse
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &decoded); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(decoded); of.encoded([]byte(text)) < len(again) {
		t.Errorf("%d bytes are estimated as %d", len(again), of.encoded([]byte(text)))
	}
}

func TestJSONExpandsIfItsStructsHaveAllFields(t *testing.T) {
	of := Of(reflect.TypeFor[sparse]())
	filled := `{"First":true,"Second":false,"Third":true,"Names":["a"],"inner":{"number":1,"array":[true,true,true]}}`
	for _, c := range []struct {
		name, json string
		want       bool
	}{
		{"few nulls", `{"Plain":` + listOf("null", 4000) + "}", false},
		{"many nulls", `{"Plain":` + listOf("null", 40_000) + "}", true},
		{"many nulls of pointers", `{"pointers":` + listOf("null", 400_000) + "}", false},
		{"many pointers", `{"pointers":` + listOf("{}", 40_000) + "}", true},
		{"names", `{"byName":` + members("null", 40_000) + "}", true},
		{"lists", `{"lists":[` + listOf("null", 40_000) + "]}", true},
		{"structs with omitted fields", `{"short":` + listOf("null", 400_000) + "}", false},
		{"usual values", `{"Plain":` + listOf(filled, 40_000) + "}", false},
		{"no JSON", `{"Plain":` + listOf("null", 40_000), false},
	} {
		if got := of.Expands([]byte(c.json)); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
