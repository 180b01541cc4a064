package rbac

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// fake is a server for access reviews.
type fake struct {
	mu      sync.Mutex
	denied  map[string]bool // "patch kopfexamples/status in ns1"
	asked   []string
	pending int
	most    int // requests at once
	fail    error
}

func (f *fake) Create(_ context.Context, t kube.Target, raw []byte, _ ...kube.Param) (*object.Body, error) {
	f.mu.Lock()
	f.pending++
	f.most = max(f.most, f.pending)
	f.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // in virtual time
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending--
	if f.fail != nil {
		return nil, f.fail
	}
	if t.Info.Plural == "selfsubjectreviews" {
		return object.FromMap(map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "system:serviceaccount:ops:me"}}})
	}
	var review struct {
		Spec struct {
			ResourceAttributes struct{ Verb, Resource, Subresource, Namespace string }
		}
	}
	if err := json.Unmarshal(raw, &review); err != nil {
		return nil, err
	}
	a := review.Spec.ResourceAttributes
	text := a.Verb + " " + strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	f.asked = append(f.asked, text)
	return object.FromMap(map[string]any{"status": map[string]any{"allowed": !f.denied[text]}})
}

// questions returns the reviews since the last call, sorted.
func (f *fake) questions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := slices.Sorted(slices.Values(f.asked))
	f.asked = nil
	return asked
}

func (f *fake) set(denied ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denied = map[string]bool{}
	for _, d := range denied {
		f.denied[d] = true
	}
}

// reviewing is a running reviewer.
type reviewing struct {
	*Reviewer
	api     *fake
	log     *bytes.Buffer
	granted int
}

// pass lets time pass, and waits until all goroutines are idle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// run runs a reviewer in virtual time.
func run(t *testing.T, namespaces []string, test func(*reviewing), denied ...string) {
	synctest.Test(t, func(t *testing.T) {
		r := &reviewing{api: &fake{}, log: &bytes.Buffer{}}
		r.api.set(denied...)
		needs := Needs([]Use{{Info: examples, Write: []string{"create"}}}, Framework{})
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "without" {
				return slog.Attr{}
			}
			return a
		}
		r.Reviewer = NewReviewer(Config{
			API: r.api, Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: drop})),
			Needs: func() []Need { return needs }, Namespaces: func() []string { return namespaces },
			Granted: func() { r.granted++ },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { r.Run(ctx) })
		pass(500 * time.Millisecond)
		test(r)
		cancel()
		done.Wait()
	})
}

// lines returns the log lines since the last call, without manifests.
func (r *reviewing) lines() []string {
	text := strings.TrimSpace(r.log.String())
	r.log.Reset()
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if head, _, cut := strings.Cut(l, `:" manifest=`); cut {
			lines[i] = head
		}
	}
	return lines
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got\n%s", what, diff)
	}
}

func TestGrantedPermissionsAreReviewedOnceAndNotLogged(t *testing.T) {
	run(t, nil, func(r *reviewing) {
		pass(time.Hour)
		expect(t, "questions", []string{"get kopfexamples", "list kopfexamples", "patch kopfexamples", "patch kopfexamples/status", "watch kopfexamples"}, r.api.questions())
		expect(t, "lines", []string(nil), r.lines())
		if r.granted != 0 {
			t.Error("Granted was called")
		}
	})
}

func TestEveryMissingPermissionIsLoggedOnceUntilItIsGranted(t *testing.T) {
	run(t, nil, func(r *reviewing) {
		expect(t, "lines", []string{
			`level=WARN msg="A permission is missing." verbs="[list watch]" resource=kopfexamples.kopf.dev by=[create]`,
			`level=WARN msg="A permission is missing." verbs=[patch] resource=kopfexamples/status.kopf.dev by=[create]`,
			`level=WARN msg="To grant all missing permissions, apply this manifest; no restart is needed`,
		}, r.lines())
		pass(10 * time.Minute)
		expect(t, "later lines", []string(nil), r.lines())
		if got := len(r.api.questions()); got < 3*20 || got > 5+3*26 {
			t.Errorf("%d reviews within 10 minutes", got)
		}
		r.api.set("watch kopfexamples")
		pass(30 * time.Second)
		expect(t, "lines when granted", []string{
			`level=INFO msg="A missing permission was granted." verbs=[list] resource=kopfexamples.kopf.dev`,
			`level=INFO msg="A missing permission was granted." verbs=[patch] resource=kopfexamples/status.kopf.dev`,
		}, r.lines())
		expect(t, "calls back", 1, r.granted)
		r.api.set()
		pass(30 * time.Second)
		expect(t, "lines when all is granted", 1, len(r.lines()))
		expect(t, "calls back", 2, r.granted)
		r.api.questions()
		pass(time.Hour)
		expect(t, "questions when all is granted", []string(nil), r.api.questions())
	}, "list kopfexamples", "watch kopfexamples", "patch kopfexamples/status")
}

func TestNamespacesAreReviewedOnlyIfTheClusterIsDenied(t *testing.T) {
	run(t, []string{"b", "a", "c"}, func(r *reviewing) {
		expect(t, "questions", []string{
			"get kopfexamples", "list kopfexamples", "list kopfexamples in a", "list kopfexamples in b", "list kopfexamples in c",
			"patch kopfexamples", "patch kopfexamples in a", "patch kopfexamples in b", "patch kopfexamples in c", "patch kopfexamples/status", "watch kopfexamples",
		}, r.api.questions())
		expect(t, "lines", []string{
			`level=WARN msg="A permission is missing." verbs=[patch] resource=kopfexamples.kopf.dev namespaces="[a c]" by=[create]`,
			`level=WARN msg="To grant all missing permissions, apply this manifest; no restart is needed`,
		}, r.lines())
		r.api.set("list kopfexamples", "patch kopfexamples", "patch kopfexamples in a")
		pass(10 * time.Second)
		expect(t, "lines when granted", []string{
			`level=INFO msg="A missing permission was granted." verbs=[patch] resource=kopfexamples.kopf.dev namespaces=[c]`,
		}, r.lines())
		r.api.set()
		pass(30 * time.Second)
		expect(t, "lines when granted for the cluster", []string{
			`level=INFO msg="A missing permission was granted." verbs=[patch] resource=kopfexamples.kopf.dev namespaces=[a]`,
		}, r.lines())
	}, "list kopfexamples", "patch kopfexamples", "patch kopfexamples in a", "patch kopfexamples in c")
}

func TestReviewsAreLimited(t *testing.T) {
	var many, denied []string
	denied = append(denied, "list kopfexamples", "watch kopfexamples")
	for i := range 500 {
		many = append(many, fmt.Sprintf("n%03d", i))
		denied = append(denied, "list kopfexamples in "+many[i], "watch kopfexamples in "+many[i])
	}
	run(t, many, func(r *reviewing) {
		if got := len(r.api.questions()); got != 5+narrowQuestions {
			t.Errorf("%d reviews", got)
		}
		if r.api.most > atOnce {
			t.Errorf("%d concurrent reviews", r.api.most)
		}
		if lines := r.lines(); !slices.Contains(lines, `level=INFO msg="Too many permissions to review; some are skipped." unasked=940`) {
			t.Errorf("the log does not mention it: %q", lines)
		}
	}, denied...)
}

func TestARevokedPermissionIsDetectedAfterARejection(t *testing.T) {
	run(t, nil, func(r *reviewing) {
		r.api.questions()
		r.api.set("patch kopfexamples")
		r.Refused(errors.New("something else"))
		pass(time.Minute)
		expect(t, "questions after another error", []string(nil), r.api.questions())
		for range 100 { // rejections come in bursts
			r.Refused(fmt.Errorf("patch: %w", apierrors.NewForbidden(schema.GroupResource{}, "x", nil)))
			pass(10 * time.Millisecond)
		}
		if got := len(r.api.questions()); got > 6 {
			t.Errorf("%d reviews within a second", got)
		}
		expect(t, "lines", 2, len(r.lines()))
		r.api.set()
		pass(time.Minute)
		expect(t, "calls back", 1, r.granted)
	})
}

func TestRepeatedRejectionsAreNotReviewedEachTime(t *testing.T) {
	run(t, nil, func(r *reviewing) {
		round := len(r.api.questions())
		for range 3600 { // by a permission that the framework does not need
			r.Recheck()
			pass(time.Second)
		}
		if got := len(r.api.questions()) / round; got > 20 {
			t.Errorf("%d rounds within an hour", got)
		}
		pass(time.Hour)
		r.api.questions()
		r.Recheck()
		pass(time.Second)
		if len(r.api.questions()) == 0 {
			t.Error("a rejection after a long time is not reviewed at once")
		}
	})
}

func TestRejectedReviewsAreNotRepeated(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "x", nil)
	for name, c := range map[string]struct {
		err   error
		again bool
	}{"refused": {forbidden, false}, "lost": {errors.New("connection reset"), true}} {
		t.Run(name, func(t *testing.T) {
			run(t, nil, func(r *reviewing) {
				r.api.questions()
				r.log.Reset()
				r.api.mu.Lock()
				r.api.fail = c.err
				r.api.mu.Unlock()
				r.Recheck()
				pass(15 * time.Second)
				lines := r.lines()
				if len(lines) == 0 || slices.ContainsFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "level=DEBUG") }) {
					t.Errorf("got %q", lines)
				}
				r.api.mu.Lock()
				r.api.fail = nil
				r.api.mu.Unlock()
				pass(time.Hour)
				expect(t, "asked again", c.again, len(r.api.questions()) > 0)
			})
		})
	}
}
