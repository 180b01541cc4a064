package history

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestEntriesOfOneObjectAreSortedByTheirStart(t *testing.T) {
	r := New()
	r.Add("a", Entry{At: start.Add(2), Step: Call, Handler: "provision", Outcome: "retried", Took: time.Second, Text: "refused"})
	r.Add("b", Entry{At: start, Step: Turn})
	r.Add("a", Entry{At: start.Add(1), Step: Turn, Text: "ADDED"})
	got := r.Of("a")
	if len(got) != 2 || got[0].Step != Turn || got[0].Text != "ADDED" || got[0].Handler != "" {
		t.Fatalf("%+v", got)
	}
	if e := got[1]; e.Handler != "provision" || e.Outcome != "retried" || e.Text != "refused" || e.Took != time.Second || !e.At.Equal(start.Add(2)) || e.Step.String() != "call" {
		t.Errorf("%+v", e)
	}
	if got := r.Of("c"); got != nil {
		t.Errorf("an unknown object has %v", got)
	}
}

func TestTheOldestEntriesAreReplaced(t *testing.T) {
	r := New()
	for i := range slots + 10 {
		r.Add(fmt.Sprint(i), Entry{At: start.Add(time.Duration(i)), Step: Turn})
	}
	if r.Of("9") != nil || len(r.Of("10")) != 1 || len(r.Of(fmt.Sprint(slots+9))) != 1 {
		t.Error("not the oldest entries were replaced")
	}
	if unsafe.Sizeof(slot{}) != slotSize || len(r.slots)*slotSize != Budget || Budget > 2<<20 {
		t.Errorf("an entry has %d bytes, and the ring %d entries", unsafe.Sizeof(slot{}), len(r.slots))
	}
}

func TestLongTextsAreTruncatedBetweenCharacters(t *testing.T) {
	r := New()
	r.Add("a", Entry{At: start, Step: Call, Handler: strings.Repeat("é", 100), Outcome: "failed", Text: strings.Repeat("漢", 100)})
	e := r.Of("a")[0]
	if !utf8.ValidString(e.Handler) || !utf8.ValidString(e.Text) || len(e.Handler) != 40 || len(e.Text) < 50 || e.Outcome != "failed" {
		t.Errorf("%+v", e)
	}
}

func TestEntriesAllocateNothing(t *testing.T) {
	r := New()
	e := Entry{At: start, Step: Call, Handler: "provision", Outcome: "failed", Text: strings.Repeat("x", 200)}
	if n := testing.AllocsPerRun(100, func() { r.Add("some-uid", e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var none *Ring
	if none.Add("a", e); none.Of("a") != nil {
		t.Error("a nil ring has entries")
	}
}
