package admission

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// fakeAPI is an API server with webhook configurations.
type fakeAPI struct {
	mu       sync.Mutex
	objects  map[string]map[string]any // by plural
	version  int
	requests []string                          // verbs and plurals of all writes
	fault    func(verb, plural string) error   // called before a request; its error is returned
	lost     func(verb, plural string) error   // called after a write; its error is returned
	watchers []func(b *object.Body, gone bool) // called for every change
	before   func(plural string, f *fakeAPI)   // called before a write, with the lock held
}

func newFakeAPI() *fakeAPI { return &fakeAPI{objects: map[string]map[string]any{}} }

func (f *fakeAPI) follow(ctx context.Context, info kind.Info, changed func(*object.Body, bool)) {
	f.mu.Lock()
	f.watchers = append(f.watchers, func(b *object.Body, gone bool) {
		if b.Kind == info.Kind {
			changed(b, gone)
		}
	})
	f.mu.Unlock()
	<-ctx.Done()
}

func (f *fakeAPI) request(verb, plural string) error {
	if verb != "get" {
		f.requests = append(f.requests, verb+" "+plural)
	}
	if f.fault != nil {
		return f.fault(verb, plural)
	}
	return nil
}

func (f *fakeAPI) body(plural string) *object.Body {
	b, err := object.FromMap(f.objects[plural])
	if err != nil {
		panic(err)
	}
	return b
}

// store stores an object, with the server's defaults, if that changes anything.
func (f *fakeAPI) store(info kind.Info, name string, list []any) {
	for i, e := range list {
		list[i] = defaulted(e.(map[string]any), info.Kind == "MutatingWebhookConfiguration")
	}
	old := f.objects[info.Plural]
	if old != nil && cmp.Equal(old["webhooks"], any(list)) {
		return
	}
	f.version++
	f.objects[info.Plural] = map[string]any{
		"apiVersion": info.APIVersion(), "kind": info.Kind, "webhooks": list,
		"metadata": map[string]any{"name": name, "resourceVersion": strconv.Itoa(f.version)},
	}
	for _, w := range f.watchers {
		b := f.body(info.Plural)
		go w(b, false)
	}
}

func (f *fakeAPI) Get(_ context.Context, t kube.Target) (*object.Body, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.request("get", t.Info.Plural); err != nil {
		return nil, err
	}
	if f.objects[t.Info.Plural] == nil {
		return nil, apierrors.NewNotFound(t.Info.GVR().GroupResource(), t.Name)
	}
	return f.body(t.Info.Plural), nil
}

func (f *fakeAPI) Create(_ context.Context, t kube.Target, raw []byte, _ ...kube.Param) (*object.Body, error) {
	return f.write("create", t, raw)
}

func (f *fakeAPI) Patch(_ context.Context, t kube.Target, _ types.PatchType, raw []byte, _ ...kube.Param) (*object.Body, error) {
	return f.write("patch", t, raw)
}

func (f *fakeAPI) write(verb string, t kube.Target, raw []byte) (*object.Body, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	plural := t.Info.Plural
	if err := f.request(verb, plural); err != nil {
		return nil, err
	}
	if f.before != nil {
		f.before(plural, f)
	}
	var sent struct {
		Metadata struct{ Name, ResourceVersion string }
		Webhooks []any
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	resource := t.Info.GVR().GroupResource()
	old := f.objects[plural]
	switch {
	case verb == "create" && old != nil:
		return nil, apierrors.NewAlreadyExists(resource, sent.Metadata.Name)
	case verb == "patch" && old == nil:
		return nil, apierrors.NewNotFound(resource, t.Name)
	case verb == "patch" && string(raw) == "{}":
		return f.body(plural), nil
	case verb == "patch" && sent.Metadata.ResourceVersion != f.body(plural).ResourceVersion:
		return nil, apierrors.NewConflict(resource, t.Name, errors.New("stale"))
	}
	f.store(t.Info, managedName, sent.Webhooks)
	if f.lost != nil {
		if err := f.lost(verb, plural); err != nil {
			return nil, err
		}
	}
	return f.body(plural), nil
}

const managedName = "auto.kopf.dev"

// names returns the names of the webhooks in a configuration.
func (f *fakeAPI) names(plural string) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, _ := f.objects[plural]["webhooks"].([]any)
	for _, e := range list {
		names = append(names, e.(map[string]any)["name"].(string))
	}
	return names
}

// wrote returns the writes since the last call.
func (f *fakeAPI) wrote() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	requests := f.requests
	f.requests = nil
	return requests
}

const (
	validatings = "validatingwebhookconfigurations"
	mutatings   = "mutatingwebhookconfigurations"
)

// configure runs configurations in a synctest bubble; stop ends them.
func configure(t *testing.T, f *fakeAPI, handlers ...*handler.Handler) (c *Configurations, stop func()) {
	t.Helper()
	c = newConfigurations(f, f.follow, ConfigurationsOptions{
		Managed: managedName, Handlers: handlers, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return c, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

var server = webhook.ClientConfig{URL: "https://here", CABundle: []byte("PEM")}

func TestConfigurationsExistWhileTheOperatorRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		c, stop := configure(t, f,
			validating("a", "kopfexamples", handler.Admission{}),
			validating("p", "kopfexamples", handler.Admission{Persistent: true}))
		c.Discovered([]kind.Info{examples})
		synctest.Wait()
		same(t, "before the announcement", f.wrote(), nil)

		c.Announce(t.Context(), server)
		same(t, "after it", f.names(validatings), []string{"a.auto.kopf.dev", "p.auto.kopf.dev"})
		same(t, "requests", f.wrote(), []string{"create " + validatings})

		c.Announce(t.Context(), server)
		c.Discovered([]kind.Info{configMaps, examples})
		synctest.Wait()
		same(t, "the same again", f.wrote(), nil)

		c.Announce(t.Context(), webhook.ClientConfig{URL: "https://there"})
		same(t, "another server", f.wrote(), []string{"patch " + validatings})

		stop()
		same(t, "at the end", f.names(validatings), []string{"p.auto.kopf.dev"})
		same(t, "requests", f.wrote(), []string{"patch " + validatings})

		// The next start finds the webhooks of the last one.
		c, stop = configure(t, f, validating("p", "kopfexamples", handler.Admission{Persistent: true}))
		c.Discovered([]kind.Info{examples})
		c.Announce(t.Context(), webhook.ClientConfig{URL: "https://there"})
		stop()
		same(t, "a restart", f.wrote(), nil)
	})
}

func TestStoppingReplicasLeaveTheirWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		c, stop := configure(t, f, validating("a", "kopfexamples", handler.Admission{}))
		c.Stay = true
		c.Discovered([]kind.Info{examples})
		if c.Absent(false) {
			t.Error("the configuration counts as absent before it was read")
		}
		c.Announce(t.Context(), server)
		if !c.Absent(false) {
			t.Error("the configuration does not count as absent, but had to be created")
		}
		f.wrote()
		stop()
		same(t, "at the end", f.names(validatings), []string{"a.auto.kopf.dev"})
		same(t, "requests", f.wrote(), nil)
	})
}

func TestOnlyOwnWebhooksAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		k := newKeeper(f, f.follow, true, &ConfigurationsOptions{Managed: managedName, Log: slog.New(slog.DiscardHandler)})
		f.store(k.info, managedName, []any{
			Entry{"name": "other.org.dev", "note": "mine"}, Entry{"name": "old.auto.kopf.dev"},
		})
		c, stop := configure(t, f, validating("m", "kopfexamples", handler.Admission{Mutating: true}))
		c.Discovered([]kind.Info{examples})
		c.Announce(t.Context(), server)
		same(t, "with others", f.names(mutatings), []string{"other.org.dev", "m.auto.kopf.dev"})
		stop()
		same(t, "at the end", f.names(mutatings), []string{"other.org.dev"})
		same(t, "requests", f.wrote(), []string{"patch " + mutatings, "patch " + mutatings})
	})
}

func TestChangesByOtherClientsAreRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		c, stop := configure(t, f, validating("a", "kopfexamples", handler.Admission{}))
		defer stop()
		c.Discovered([]kind.Info{examples})
		c.Announce(t.Context(), server)
		f.wrote()
		info := c.keepers[0].info
		spoil := func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.store(info, managedName, []any{Entry{"name": "a.auto.kopf.dev", "failurePolicy": "Ignore"}})
		}
		synctest.Wait()
		for i, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} { // another client keeps reverting
			spoil()
			synctest.Wait()
			if want > 0 {
				same(t, "too early", f.wrote(), nil)
				time.Sleep(want - time.Nanosecond)
				synctest.Wait()
				same(t, "still too early", f.wrote(), nil)
				time.Sleep(time.Nanosecond)
				synctest.Wait()
			}
			if got := f.wrote(); len(got) != 1 {
				t.Fatalf("%d: got %v after %s", i, got, want)
			}
		}
		// A new plan does not wait for the backoff.
		spoil()
		synctest.Wait()
		c.Announce(t.Context(), webhook.ClientConfig{URL: "https://there"})
		same(t, "our own change", f.wrote(), []string{"patch " + validatings})

		// Changes of foreign webhooks are ignored.
		time.Sleep(time.Hour)
		synctest.Wait()
		f.mu.Lock()
		list := append([]any{Entry{"name": "x.org.dev"}}, f.objects[validatings]["webhooks"].([]any)...)
		f.store(info, managedName, list)
		f.mu.Unlock()
		synctest.Wait()
		same(t, "others' own", f.wrote(), nil)

		// A deleted configuration is restored.
		f.mu.Lock()
		gone := f.body(validatings)
		delete(f.objects, validatings)
		for _, w := range f.watchers {
			go w(gone, true)
		}
		f.mu.Unlock()
		synctest.Wait()
		same(t, "a deletion", f.wrote(), []string{"create " + validatings})
	})
}

func TestConflictsAndLostResponsesAreResolved(t *testing.T) {
	lost := &kube.UnknownOutcomeError{Err: errors.New("lost")}
	for name, c := range map[string]struct {
		prepare func(f *fakeAPI, info kind.Info)
		want    []string
	}{
		"another client creates it": {func(f *fakeAPI, info kind.Info) {
			f.before = func(string, *fakeAPI) {
				f.before = nil
				f.store(info, managedName, []any{Entry{"name": "x.org.dev"}})
			}
		}, []string{"create " + validatings, "patch " + validatings}},
		"another client changes it": {func(f *fakeAPI, info kind.Info) {
			f.store(info, managedName, nil)
			f.before = func(string, *fakeAPI) {
				f.before = nil
				f.store(info, managedName, []any{Entry{"name": "x.org.dev"}})
			}
		}, []string{"patch " + validatings, "patch " + validatings}},
		"the response is lost": {func(f *fakeAPI, _ kind.Info) {
			f.lost = func(string, string) error { return lost }
		}, []string{"create " + validatings}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeAPI()
				conf, stop := configure(t, f, validating("a", "kopfexamples", handler.Admission{}))
				defer stop()
				c.prepare(f, conf.keepers[0].info)
				conf.Discovered([]kind.Info{examples})
				conf.Announce(t.Context(), server)
				same(t, "requests", f.wrote(), c.want)
				if got := strings.Join(f.names(validatings), " "); !strings.Contains(got, "a.auto.kopf.dev") || strings.HasPrefix(name, "another client") && !strings.Contains(got, "x.org") {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}

func TestFailedWritesAreRetriedWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.fault = func(_, plural string) error {
			if plural != validatings {
				return nil
			}
			return apierrors.NewInternalError(errors.New("oops"))
		}
		c, stop := configure(t, f, validating("a", "kopfexamples", handler.Admission{}))
		defer stop()
		var mu sync.Mutex
		var told []error
		c.Status = func(err error) { mu.Lock(); defer mu.Unlock(); told = append(told, err) }
		c.Discovered([]kind.Info{examples})
		announced := make(chan struct{})
		go func() { c.Announce(t.Context(), server); close(announced) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		select {
		case <-announced:
			t.Fatal("Announce returned before the configuration was written")
		default:
		}
		mu.Lock()
		if n := len(told); n < 60 || n > 70 || told[n-1] == nil {
			t.Errorf("there were %d attempts in an hour", n)
		}
		mu.Unlock()
		f.mu.Lock()
		f.fault = nil
		f.mu.Unlock()
		<-announced
		same(t, "in the end", f.names(validatings), []string{"a.auto.kopf.dev"})
		synctest.Wait()
		if told[len(told)-1] != nil {
			t.Error("Status was not called after the recovery")
		}
	})
}

func TestThePermissionsOfKopfSuffice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.fault = func(verb, plural string) error {
			if verb == "get" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: plural}, managedName, errors.New("no"))
			}
			return nil
		}
		c, stop := configure(t, f, validating("a", "kopfexamples", handler.Admission{}))
		c.Discovered([]kind.Info{examples})
		c.Announce(t.Context(), server)
		same(t, "announced", f.names(validatings), []string{"a.auto.kopf.dev"})
		stop()
		same(t, "at the end", f.names(validatings), nil)
	})
}

func TestUnusedConfigurationsNeedNoPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.fault = func(_, plural string) error {
			if plural == mutatings {
				return apierrors.NewForbidden(schema.GroupResource{Resource: plural}, managedName, errors.New("no"))
			}
			return nil
		}
		c, stop := configure(t, f, validating("a", "kopfexamples", handler.Admission{}))
		c.Discovered([]kind.Info{examples})
		c.Announce(t.Context(), server)
		synctest.Wait()
		if len(f.watchers) != 1 {
			t.Errorf("%d configurations are watched", len(f.watchers))
		}
		stop()
	})
}

func TestAnnounceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAPI()
		f.fault = func(string, string) error { return errors.New("unreachable") }
		c := newConfigurations(f, f.follow, ConfigurationsOptions{Managed: managedName, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c.Announce(ctx, server)
		if ctx.Err() == nil {
			t.Error("Announce returned too early")
		}
	})
}
