package vectors_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/storage"
)

func peeringOf(t *testing.T, v vector) {
	now, err := storage.ParseTime(decode[string](t, v.File["now"]))
	if err != nil {
		t.Fatal(err)
	}
	switch v.Part {
	case "own_records":
		ownRecord(t, now, v)
	case "parsing":
		parsedRecord(t, now, v)
	case "decisions":
		peeringDecision(t, now, v)
	default:
		t.Fatalf("there is no runner for the part %q", v.Part)
	}
}

func ownRecord(t *testing.T, now time.Time, v vector) {
	c := decode[struct {
		Input        map[string]any
		IsDead       bool           `json:"is_dead"`
		Record       map[string]any // of Kopf's own memory, with no lifetime too
		PatchedValue any            `json:"patched_value"`
		Repr         string
	}](t, v.JSON)
	r := oneRecord(t, now, "me", c.Input)
	if r.Dead(now) != c.IsDead {
		t.Errorf("dead: got %v", r.Dead(now))
	}
	if r.String() != c.Repr {
		t.Errorf("printed:\ngot  %s\nwant %s", r, c.Repr)
	}
	if d := cmp.Diff(plain(t, c.PatchedValue), plain(t, r.Value())); d != "" {
		t.Errorf("written: -want +got\n%s", d)
	}
}

func parsedRecord(t *testing.T, now time.Time, v vector) {
	c := decode[struct {
		Record             map[string]any
		Priority           int
		Lifetime           float64 `json:"lifetime_s"`
		LastSeen, Deadline time.Time
		IsDead             bool `json:"is_dead"`
	}](t, v.JSON)
	got := oneRecord(t, now, "x", c.Record)
	want := peering.Record{Identity: "x", Priority: c.Priority, Lifetime: time.Duration(c.Lifetime * float64(time.Second)), LastSeen: c.LastSeen}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if !got.Deadline().Equal(c.Deadline) || got.Dead(now) != c.IsDead {
		t.Errorf("got the deadline %v, dead %v, want %v, %v", got.Deadline(), got.Dead(now), c.Deadline, c.IsDead)
	}
}

func peeringDecision(t *testing.T, now time.Time, v vector) {
	c := decode[struct {
		Own          string `json:"own_identity"`
		Priority     int    `json:"own_priority"`
		Peering      string `json:"own_peering"`
		Object       string `json:"object_name"`
		Status       map[string]any
		PausedBefore bool `json:"paused_before"`
		PausedAfter  bool `json:"paused_after"`
		Cleaned      []string
		Touched      bool
		Delays       []float64
	}](t, v.JSON)
	if c.Object != c.Peering {
		// Nothing is decided about such objects: the tests of peering have one in
		// the way of a member.
		if c.PausedAfter != c.PausedBefore || c.Cleaned != nil || c.Delays != nil {
			t.Error("the object is not ours, but something is expected to be done with it")
		}
		return
	}
	if c.Delays == nil {
		t.Error("the object is ours, but nothing is expected to be decided")
	}
	d := peering.Decide(now, c.Own, c.Priority, c.Status)
	if d.Pause() != c.PausedAfter {
		t.Errorf("paused: got %v, want %v", d.Pause(), c.PausedAfter)
	}
	// Quirk 13: Kopf removes its own record when it is late to renew it, and is
	// unknown to the others then. Ours is renewed at once.
	own := slices.Index(c.Cleaned, c.Own)
	if own >= 0 {
		c.Cleaned = slices.Delete(c.Cleaned, own, own+1)
	}
	_, present := c.Status[c.Own]
	if late := own >= 0; d.Absent != (late || !present) {
		t.Errorf("absent: got %v, our record is late: %v, is present: %v", d.Absent, late, present)
	}
	if !slices.Equal(slices.Sorted(slices.Values(c.Cleaned)), d.Dead) {
		t.Errorf("to be removed: got %q, want %q", d.Dead, c.Cleaned)
	}
	// Kopf sleeps until the first of these deadlines, and then touches its own
	// record so that an event makes it decide again; we just decide again.
	var delays []float64
	for _, r := range slices.Concat(d.Same, d.Higher) {
		delays = append(delays, r.Deadline().Sub(now).Seconds())
	}
	if !slices.Equal(slices.Sorted(slices.Values(c.Delays)), slices.Sorted(slices.Values(delays))) {
		t.Errorf("deadlines: got %v, want %v", delays, c.Delays)
	}
	if again := !d.Again.IsZero(); again != c.Touched {
		t.Errorf("decides again: got %v, want %v", again, c.Touched)
	} else if again && d.Again.Sub(now).Seconds() != slices.Min(c.Delays) {
		t.Errorf("decides again: got in %v, want in %v s", d.Again.Sub(now), slices.Min(c.Delays))
	}
}

func keepAliveInterval(t *testing.T, v vector) {
	c := decode[struct {
		Lifetime int
		Min      int `json:"min_sleep"`
		Max      int `json:"max_sleep"`
	}](t, v.JSON)
	interval := func(ahead int) int {
		return int(peering.Interval(time.Duration(c.Lifetime)*time.Second, time.Duration(ahead)*time.Second) / time.Second)
	}
	if least, most := interval(10), interval(5); least != c.Min || most != c.Max {
		t.Errorf("got %d to %d, want %d to %d", least, most, c.Min, c.Max)
	}
}

func descriptiveHostname(t *testing.T, v vector) {
	c := decode[struct {
		Gethostname        string
		ResolvedName       string `json:"resolved_name"`
		Aliases, Addresses []string
		Resolution, Result string
	}](t, v.JSON)
	var names []string
	if c.Resolution != "fails" {
		names = slices.Concat([]string{c.ResolvedName}, c.Aliases, c.Addresses)
	}
	if got := peering.DescriptiveHostname(c.Gethostname, names); got != c.Result {
		t.Errorf("got %q, want %q", got, c.Result)
	}
}

func oneRecord(t *testing.T, now time.Time, identity string, value any) peering.Record {
	t.Helper()
	records, unreadable := peering.Parse(map[string]any{identity: value}, now)
	if len(records) != 1 || unreadable != nil {
		t.Fatalf("got %v, %v", records, unreadable)
	}
	return records[0]
}

// plain is a value as it comes back from JSON.
func plain(t *testing.T, v any) (p any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}
