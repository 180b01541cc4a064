package controller

import (
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/history"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// crowd returns a controller that knows n objects in 10 namespaces.
func crowd(n int) *Controller {
	c := &Controller{memories: map[string]*process.Memory{}, config: Config{Clock: NewClock()}}
	for i := range n {
		id := object.Identity{UID: fmt.Sprintf("uid-%06d", i), Namespace: fmt.Sprintf("team-%d", i%10), Name: fmt.Sprintf("db-%06d", i)}
		c.memories[id.UID] = process.NewMemory(&process.Event{Body: &object.Body{Identity: id}})
	}
	return c
}

func TestAllPagesTogetherHaveEachObjectOnce(t *testing.T) {
	c := crowd(1000)
	seen, after, last := 0, "", ""
	for {
		page, total := c.Browse(Browsing{After: after, Limit: 64})
		if total != 1000 {
			t.Fatalf("%d objects in total", total)
		}
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			if name := o.Namespace + "/" + o.Name; name <= last {
				t.Fatalf("%s follows %s", name, last)
			} else {
				last = name
			}
		}
		seen, after = seen+len(page), last
	}
	if seen != 1000 {
		t.Errorf("%d objects on all pages", seen)
	}
}

func TestObjectsAreSearchedAmongAHundredThousand(t *testing.T) {
	c := crowd(100_000)
	for search, want := range map[string]struct {
		total int
		first string
	}{
		"":                 {100_000, "team-0/db-000000"},
		"DB-09999":         {10, "team-0/db-099990"},
		"team-3":           {10_000, "team-3/db-000003"},
		"team-3/db-099993": {1, "team-3/db-099993"},
		"nothing":          {0, ""},
	} {
		page, total := c.Browse(Browsing{Search: search, Limit: 50})
		first := ""
		if len(page) > 0 {
			first = page[0].Namespace + "/" + page[0].Name
		}
		if total != want.total || first != want.first || len(page) > 50 {
			t.Errorf("%q: %d objects, the first is %q", search, total, first)
		}
	}
}

func TestObjectsAreFoundByTheirState(t *testing.T) {
	c := crowd(20)
	c.config.Clock.Set(Appointment{c, "uid-000007"}, time.Now().Add(time.Hour))
	c.config.Clock.Set(Appointment{crowd(1), "uid-000008"}, time.Now().Add(time.Hour)) // of another resource
	c.active.Store("uid-000003", c.memories["uid-000003"])
	for state, want := range map[string]string{"retrying": "db-000007", "running": "db-000003"} {
		page, total := c.Browse(Browsing{State: state, Limit: 5})
		if total != 1 || page[0].Name != want || page[0].Retrying != (state == "retrying") || page[0].Running != (state == "running") {
			t.Errorf("%s: %d %+v", state, total, page)
		}
	}
	if _, total := c.Browse(Browsing{State: "paused", Limit: 5}); total != 0 {
		t.Errorf("%d paused objects", total)
	}
}

func TestTimelinesOfSecretsHaveNoTexts(t *testing.T) {
	ring := history.New()
	for uid, secret := range map[string]bool{"plain": false, "secret": true} {
		to := &trail{ring, secret}
		to.Called(uid, "fn", execute.Outcome{Final: true, Err: fmt.Errorf("password hunter2"), Message: "password hunter2"}, time.Second)
		to.Posted(uid, "Rotated", "hunter2")
		to.Wrote(uid, fmt.Errorf("hunter2 is refused"), time.Now())
		for _, e := range ring.Of(uid) {
			if secret == (e.Text != "") {
				t.Errorf("%s: %+v", uid, e)
			}
		}
		if len(ring.Of(uid)) != 3 {
			t.Errorf("%s: %v", uid, ring.Of(uid))
		}
	}
}
