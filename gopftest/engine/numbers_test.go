package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// Two handlers, one of them with a retry, pass the numbers of the object through the
// base, the note, the diff, patches and results. No number changes on the server, and no
// number causes a handler call.
func TestNumbersOfAnyLengthAreHandledOnce(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) { handleNumbers(t, c, rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func handleNumbers(t *testing.T, c *gopftest.Cluster, random *rand.Rand) {
	var diary calls
	var log lines
	op := gopf.New()
	x := op.Resource(resource)
	x.On(gopf.Create|gopf.Update, "first", func(_ context.Context, ch *gopf.Change[gopf.Unstructured]) error {
		diary.add("first %s", ch.Reason)
		ch.SetResult(ch.Object.Object["spec"])
		return nil
	})
	x.On(gopf.Create|gopf.Update, "second", func(_ context.Context, ch *gopf.Change[gopf.Unstructured]) error {
		diary.add("second %s #%d %s", ch.Reason, ch.Retry, ch.Diff)
		if ch.Retry == 0 {
			return gopf.RetryAfter(time.Second, errors.New("not yet"))
		}
		ch.Patch.Set("status.copy", ch.Object.Object["spec"])
		ch.Patch.Edit(func(u gopf.Unstructured) {
			u.Object["status"].(map[string]any)["edited"] = u.Object["spec"]
		})
		return nil
	})
	gopftest.Start(t, op, c, gopf.Log(log.logger()))
	settle()

	long := fmt.Sprint(random.Int64()) + fmt.Sprint(random.Int64())
	spec := fmt.Sprintf(`{"nanos":%d,"above":%d,"unsigned":%d,"long":%s,"float":%v,"whole":1.0,"list":[{"n":%d}],"change":%d}`,
		1763217600000000000+random.Int64N(1e9), 1<<53+1+random.Int64N(100), 1<<63+random.Uint64N(1<<63), long,
		random.NormFloat64(), -random.Int64(), 9007199254740993)
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"x","namespace":"default"},"spec":` + spec + `}`)); err != nil {
		t.Fatal(err)
	}
	c.Create(t, object)
	before := encoded(t, get(t, c, "x").Object["spec"]) // the server stores numbers beyond int64 as floats
	time.Sleep(10 * time.Minute)
	c.Patch(t, resource, "default", "x", `{"spec":{"change":9007199254740994}}`)
	time.Sleep(10 * time.Minute)

	want := []string{
		"first create", "second create #0 ", "second create #1 ",
		"first update", "second update #0 change spec.change: 9007199254740993 -> 9007199254740994",
		"second update #1 change spec.change: 9007199254740993 -> 9007199254740994",
	}
	got := diary.all()
	if len(got) != len(want) {
		t.Fatalf("calls: %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("call %d: %q, want %q", i, got[i], want[i])
		}
	}
	after := strings.Replace(before, "9007199254740993", "9007199254740994", 1)
	now := get(t, c, "x").Object
	status := now["status"].(map[string]any)
	for where, v := range map[string]any{"spec": now["spec"], "result": status["first"], "patch": status["copy"], "edit": status["edited"]} {
		if text := encoded(t, v); text != after {
			t.Errorf("%s: %s, want %s", where, text, after)
		}
	}
	if log.has("inconsistencies") {
		t.Errorf("a number was not kept as it was sent:\n%s", strings.Join(log.text, ""))
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
