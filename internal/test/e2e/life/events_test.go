package life_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// told are the events about an object, as type, reason and message.
func (s *space) told(namespace, name string) (all []string) {
	s.T.Helper()
	list, err := s.Client.Resource(kit.GVR(events)).Namespace(namespace).List(context.Background(), listAll)
	if err != nil {
		s.T.Fatal(err)
	}
	for _, e := range list.Items {
		involved, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
		if involved["name"] == name {
			all = append(all, fmt.Sprintf("%v %v: %v", e.Object["type"], e.Object["reason"], e.Object["message"]))
		}
	}
	slices.Sort(all)
	return all
}

func TestEventsAreMadeOfLogLines(t *testing.T) {
	for level, want := range map[slog.Level][]string{
		slog.LevelWarn: {"Error Logging: broken", "Warning Logging: slow size=3"},
		slog.LevelInfo: {"Error Logging: broken", "Normal Logging: Handler 'create' succeeded.", "Normal Logging: fine", "Warning Logging: slow size=3"},
	} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			op := newOperator()
			op.Settings.Posting.Loggers, op.Settings.Posting.Level = true, level
			x := gopf.For[*Example](op, examples)
			x.OnCreate("create", func(_ context.Context, c *gopf.Change[*Example]) error {
				c.Log.Debug("details")
				c.Log.Info("fine")
				c.Log.Warn("slow", "size", 3)
				c.Log.Error("broken")
				return nil
			})
			x.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
				e.Log.Error("what handlers of events say is not posted")
				return nil
			})
			s.start(op).serving()
			s.Create(examples, "x", spec("a"))
			s.waitHandled("x", "a")
			kit.Await(t, "all events are posted", func() bool { return len(s.told(s.Name, "x")) >= len(want) })
			time.Sleep(300 * time.Millisecond)
			if got := s.told(s.Name, "x"); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestEventsAboutWhatIsInNoNamespaceAndLongOnes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	op.Settings.Posting.Loggers = true
	long := strings.Repeat("ä", 600) + "middle" + strings.Repeat("ö", 600) // more bytes than characters
	gopf.For[*Example](op, globes).When(func(c *gopf.Candidate[*Example]) bool { return c.Object.Name == s.Name }).
		OnCreate("create", func(_ context.Context, c *gopf.Change[*Example]) error {
			c.Log.Warn(long)
			return nil
		})
	s.start(op).serving()
	s.Create(globes, s.Name, spec("a"))
	t.Cleanup(func() { s.Remove(globes, s.Name) })
	var got string
	kit.Await(t, "the event is posted", func() bool {
		for _, e := range s.told("default", s.Name) {
			if strings.HasPrefix(e, "Warning Logging: ") {
				got = strings.TrimPrefix(e, "Warning Logging: ")
			}
		}
		return got != ""
	})
	want := strings.Repeat("ä", 255) + "..." + strings.Repeat("ö", 255)
	if got != want {
		t.Errorf("got %d characters: %s", len([]rune(got)), got)
	}
}

func TestWhatMayNotBePostedHarmsNobody(t *testing.T) {
	t.Parallel()
	s, d, address := newSpace(t), &diary{}, kit.FreeAddress(t)
	s.account("ours", serving()...) // events are not among what it may
	op := newOperator()
	op.Settings.Posting.Loggers = true
	op.Settings.Metrics.Address = address
	d.handles(op, "ours").OnCreate("telling", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Event(gopf.Warning, "Told", "something")
		return nil
	})
	o := s.start(op, gopf.Cluster(s.token("ours", "s1"))).serving()
	s.Create(examples, "x", spec("a"))
	s.waitHandled("x", "a")
	o.Log.WaitFor(t, "A Kubernetes event could not be posted and was lost.", "forbidden")
	s.Patch(examples, "x", spec("b"))
	s.waitHandled("x", "b")
	kit.Await(t, "losses are counted", func() bool { return scrape(t, address)["gopf_dropped_events_total"] > 0 })
	if got := s.told(s.Name, "x"); len(got) > 0 {
		t.Errorf("posted after all: %q", got)
	}
	o.Log.WaitFor(t, "events", "create") // what is missing is named
	o.Stop()
	d.Check(t, "ours create a", "ours update b")
}
