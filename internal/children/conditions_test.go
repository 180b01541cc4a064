package children

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestLongMessagesOfConditionsAreCut(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", longestMessage), strings.Repeat("x", longestMessage+1), strings.Repeat("ü", longestMessage)} {
		o := map[string]any{}
		SetCondition(o, Condition{Type: "Ready", Message: text}, time.Now())
		list, at := conditions(o, "Ready")
		got := list[at].(map[string]any)["message"].(string)
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
