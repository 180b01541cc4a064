package children

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gopf.dev/gopf/internal/test/scaling"
)

func TestLongMessagesOfConditionsAreCut(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", longestMessage), strings.Repeat("x", longestMessage+1), strings.Repeat("ü", longestMessage)} {
		o := map[string]any{}
		SetCondition(o, Condition{Type: "Ready", Message: text}, time.Now())
		got := conditions(o)[0].(map[string]any)["message"].(string)
		if len(got) > longestMessage || !utf8.ValidString(got) || len(text) <= longestMessage && got != text {
			t.Errorf("a message of %d bytes has %d", len(text), len(got))
		}
		if len(text) > longestMessage && !strings.HasSuffix(got, "…") {
			t.Errorf("the message ends with %q", got[len(got)-3:])
		}
		if CutMessage(got) != got {
			t.Error("a message that was cut is cut again")
		}
	}
}

func TestManyConditionsTakeLinearTime(t *testing.T) {
	scaling.Check(t, 300, func(n int) {
		var changes []any
		for i := range n {
			changes = append(changes, DatedCondition{Condition{Type: strconv.Itoa(i)}, time.Now()})
		}
		o := map[string]any{}
		SetConditions(o, changes)
		SetConditions(o, changes)
		if got := len(conditions(o)); got != n {
			t.Errorf("%d of %d conditions", got, n)
		}
	})
}

func TestConditionsAreSetInTheOrderOfTheCalls(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := map[string]any{"status": map[string]any{"conditions": []any{"odd", map[string]any{"type": 1}, map[string]any{"type": "B", "status": "False", "lastTransitionTime": "then"}, map[string]any{"type": "B"}}}}
	SetConditions(o, []any{
		DatedCondition{Condition{Type: "A"}, begin},
		DatedCondition{Condition{Type: "B", Message: "first"}, begin},
		DatedCondition{Condition{Type: "A", Status: true}, begin.Add(time.Minute)},
		DatedCondition{Condition{Type: "B", Message: "second"}, begin.Add(time.Minute)},
	})
	list := conditions(o)
	if len(list) != 5 {
		t.Fatalf("got %v", list)
	}
	b, a := list[2].(map[string]any), list[4].(map[string]any)
	if a["type"] != "A" || a["status"] != "True" || a["lastTransitionTime"] != "2026-01-01T00:01:00Z" || b["message"] != "second" || b["lastTransitionTime"] != "then" {
		t.Errorf("got %v", list)
	}
}
