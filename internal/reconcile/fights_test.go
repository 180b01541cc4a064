package reconcile

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
)

func TestRepairsOfAChildAreLimited(t *testing.T) {
	a, b := children.Key{Name: "a"}, children.Key{Name: "b"}
	began := time.Now()
	var f Fights
	for _, step := range []struct {
		at    time.Duration
		key   children.Key
		pause time.Duration
	}{
		{0, a, 0},
		{1 * time.Second, a, 0},
		{2 * time.Second, a, 0},
		{3 * time.Second, a, 0},
		{4 * time.Second, a, 0},
		{5 * time.Second, a, 59 * time.Second}, // one minute after the last repair
		{6 * time.Second, b, 0},                // other children are repaired
		{59 * time.Second, a, 5 * time.Second}, // attempts during the pause do not count
		{61 * time.Second, a, 0},               // the first two repairs are older than a minute
		{200 * time.Second, a, 0},              // all are
	} {
		if got := f.Repair(step.key, began.Add(step.at)); got != step.pause {
			t.Errorf("%s after %s: got the pause %s, want %s", step.key.Name, step.at, got, step.pause)
		}
	}
}

func TestRepairsOfFormerChildrenAreForgotten(t *testing.T) {
	var f Fights
	now := time.Now()
	for i := range 20 * children.MaxEntries {
		k := children.Key{Name: strconv.Itoa(i)}
		f.Repair(k, now)
		f.told[k] = "told"
		now = now.Add(time.Second)
	}
	const most = 2 * int(fightWindow/time.Second)
	if len(f.repaired) > most || len(f.told) > most {
		t.Errorf("%d children and %d messages are remembered", len(f.repaired), len(f.told))
	}
	if pause := f.Repair(children.Key{Name: "another"}, now); pause != 0 {
		t.Errorf("another child is repaired after %s", pause)
	}
}

func TestBlindAppliesOfFormerChildrenAreForgotten(t *testing.T) {
	var f Fights
	for i := range 3 * children.MaxEntries {
		f.appliedBlindly(children.Key{Name: strconv.Itoa(i)}, "1", time.Now())
	}
	if len(f.blindly) > children.MaxEntries {
		t.Errorf("%d children are remembered", len(f.blindly))
	}
}

// The name of a child may be a part of a large text of its owner.
func TestRepairsKeepNoTextsOfTheOwner(t *testing.T) {
	text := strings.Repeat("n", 1000)
	var f Fights
	f.Repair(children.Key{Name: text[:10]}, time.Now())
	f.appliedBlindly(children.Key{Name: text[:10]}, "1", time.Now())
	for k := range f.repaired {
		if unsafe.StringData(k.Name) == unsafe.StringData(text) {
			t.Error("a repair keeps the text")
		}
	}
	for k := range f.blindly {
		if unsafe.StringData(k.Name) == unsafe.StringData(text) {
			t.Error("a child without managedFields keeps the text")
		}
	}
}

func TestFightsAreReportedOnceUntilTheyEnd(t *testing.T) {
	k := children.Key{Name: "a"}
	now := time.Now()
	var f Fights
	reported := func() bool {
		first := f.first(k)
		f.told[k] = "told"
		return first
	}
	f.Repair(k, now)
	if !reported() || reported() {
		t.Error("the fight is not reported exactly once")
	}
	f.Repair(k, now.Add(fightWindow/2))
	if reported() {
		t.Error("the same fight is reported again")
	}
	f.Repair(k, now.Add(3*fightWindow))
	if !reported() {
		t.Error("another fight is not reported")
	}
}

func TestChildrenWaitForTheFirstDependencyThatIsNotReady(t *testing.T) {
	named := func(name string, on ...*handler.Wanted) *handler.Wanted {
		return &handler.Wanted{Desired: children.Desired{Key: children.Key{Kind: "Thing", Name: name}}, DependsOn: on}
	}
	a, b, c := named("a"), named("b"), named("c")
	x := &run{ready: map[*handler.Wanted]bool{a: true, b: false}}
	for _, test := range []struct {
		on   []*handler.Wanted
		want string
	}{
		{nil, ""},
		{[]*handler.Wanted{a}, ""},
		{[]*handler.Wanted{a, b, c}, "Thing b"},
		{[]*handler.Wanted{c, b}, "Thing c"},
	} {
		if got := x.awaited(named("d", test.on...)); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestReadinessByRuleOrByFunction(t *testing.T) {
	yes, no := func(*object.Body) bool { return true }, func(*object.Body) bool { return false }
	const plain, deleting = `{"kind": "ConfigMap"}`, `{"kind": "ConfigMap", "metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}`
	for name, test := range map[string]struct {
		rule          func(*object.Body) bool
		body          string
		ready, failed bool
	}{
		"built-in rules":                {nil, plain, true, false},
		"built-in rules, being deleted": {nil, deleting, false, false},
		"built-in rules, failed":        {nil, `{"kind": "Thing", "status": {"conditions": [{"type": "Stalled", "status": "True"}]}}`, false, true},
		"function":                      {yes, plain, true, false},
		"function, not ready":           {no, plain, false, false},
		"function, being deleted":       {yes, deleting, false, false},
	} {
		body, err := object.Parse([]byte(test.body))
		if err != nil {
			t.Fatal(err)
		}
		ready, failed, message := Ready(&handler.Wanted{Ready: test.rule}, readiness.Of(body.Map()), func() (*object.Body, error) { return body, nil })
		if ready != test.ready || failed != test.failed || !ready && message == "" {
			t.Errorf("%s: ready %t, failed %t (%q); want %t and %t", name, ready, failed, message, test.ready, test.failed)
		}
	}
}
