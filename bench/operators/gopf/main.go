// Command gopf is the measured operator, written with Gopf.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf"
	"gopf.dev/gopf/bench/proto"
	"gopf.dev/gopf/bench/widget"
	"gopf.dev/gopf/logs"
	"gopf.dev/gopf/webhook"
)

func main() {
	resource := flag.String("resource", "widgets", "what to handle")
	does := flag.String("does", "create", "what handlers there are: create, update, delete, resume, index, timer, daemon, validate, children; separated by commas")
	port := flag.Int("port", 0, "of the webhook server; default: any free one")
	interval := flag.Duration("interval", time.Minute, "of timers")
	namespaces := flag.String("namespaces", "", "a pattern of namespaces; default: all")
	status := flag.Bool("status", false, "keep the state in the status of the objects; default: in annotations")
	user := flag.String("as", "", "the user to impersonate; default: none")
	flag.Parse()
	if err := run(*resource, strings.Split(*does, ","), *interval, *namespaces, *user, *status, *port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(resource string, does []string, interval time.Duration, namespaces, user string, status bool, port int) error {
	counter := &proto.Counter{}
	op := gopf.New()
	if slices.Contains(does, "children") {
		op = gopf.New(gopf.Identity(widget.GroupVersion.Group))
	}
	op.Settings.Peering.Standalone = true
	op.Settings.Admission.Server = webhook.Local{Addr: "127.0.0.1", Port: port}
	if status {
		op.Settings.Persistence = gopf.StateInStatus(widget.StateKey)
	}
	widgets := gopf.For[*widget.Widget](op, widget.GroupVersion.String()+"/"+resource)
	for _, what := range does {
		declare(widgets, what, interval, counter)
	}
	log := slog.New(logs.New(os.Stderr, logs.Options{}))
	options := []gopf.RunOption{gopf.Log(log)}
	if namespaces != "" {
		options = append(options, gopf.Namespaces(namespaces))
	}
	if user != "" {
		config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
		if err != nil {
			return err
		}
		config.Impersonate.UserName = user
		options = append(options, gopf.Cluster(config))
	}
	return op.Run(proto.Serve(counter, nil), options...)
}

func declare(widgets *gopf.Resource[*widget.Widget], what string, interval time.Duration, counter *proto.Counter) {
	switch what {
	case "create":
		widgets.OnCreate("create", gopf.WithResult(func(_ context.Context, c *gopf.Change[*widget.Widget]) (widget.Result, error) {
			counter.Called(c.Object.Spec.Stamp)
			return widget.Result{Message: "created", Size: c.Object.Spec.Size}, nil
		}))
	case "children":
		declareChildren(widgets, counter)
	case "update":
		widgets.OnUpdate("update", func(_ context.Context, c *gopf.Change[*widget.Widget]) error {
			counter.Called(c.Object.Spec.Stamp)
			return nil
		})
	case "delete":
		widgets.OnDelete("delete", func(context.Context, *gopf.Change[*widget.Widget]) error {
			counter.Called(0)
			return nil
		})
	case "resume":
		widgets.OnResume("resume", func(context.Context, *gopf.Change[*widget.Widget]) error {
			counter.Seen()
			return nil
		})
	case "index":
		gopf.Index(widgets, "groups", func(_ context.Context, s *gopf.Subject[*widget.Widget]) (map[string]int64, error) {
			counter.Seen()
			return map[string]int64{s.Object.Spec.Group: s.Object.Spec.Size}, nil
		})
	case "validate":
		widgets.Validate("validate", func(_ context.Context, r *gopf.Review[*widget.Widget]) error {
			counter.Called(0)
			if r.Object.Spec.Size < 0 {
				return gopf.Deny("the size is negative")
			}
			return nil
		})
	case "timer":
		due := newSchedule(interval)
		widgets.Timer("timer", interval, func(_ context.Context, t *gopf.Tick[*widget.Widget]) error {
			counter.Late(due.lateness(t.Object.Name))
			return nil
		}, gopf.Optional())
	case "daemon":
		widgets.WithLabel("daemon", gopf.Present).Daemon("daemon", func(ctx context.Context, _ *gopf.Daemon[*widget.Widget]) error {
			counter.Seen()
			<-ctx.Done()
			return nil
		}, gopf.Optional())
	}
}

// schedule records when calls for objects are due. It takes little memory, because it counts as
// memory of the operator: it keeps hashes of names, and times as durations.
type schedule struct {
	interval time.Duration
	start    time.Time
	seed     maphash.Seed
	mu       sync.Mutex
	last     map[uint64]time.Duration
}

func newSchedule(interval time.Duration) *schedule {
	return &schedule{interval: interval, start: time.Now(), seed: maphash.MakeSeed(), last: map[uint64]time.Duration{}}
}

// lateness returns the delay of the current call. It is 0 at the first call.
func (s *schedule) lateness(name string) time.Duration {
	object := maphash.String(s.seed, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.start)
	last, known := s.last[object]
	if s.last[object] = now; !known {
		return 0
	}
	return now - last - s.interval
}
