package gopftest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// For each effect on a patch: the error of the client, whether the patch was applied,
// and when the response arrived.
func TestEffectsOnRequests(t *testing.T) {
	tests := map[string]struct {
		effects []Effect
		failed  bool
		code    int // in the request log
		applied bool
		took    time.Duration
	}{
		"none":        {nil, false, 200, true, 0},
		"fail":        {[]Effect{Fail(503)}, true, 503, false, 0},
		"fail with":   {[]Effect{FailWith(apierrors.NewForbidden(schema.GroupResource{}, "a", nil))}, true, 403, false, 0},
		"drop":        {[]Effect{Drop()}, true, 0, false, 0},
		"lose":        {[]Effect{LoseAnswer()}, true, 0, true, 0},
		"hold":        {[]Effect{Hold(time.Second)}, false, 200, true, time.Second},
		"hold answer": {[]Effect{HoldAnswer(time.Second)}, false, 200, true, time.Second},
		"hang":        {[]Effect{Hang()}, true, 0, false, time.Minute},
		"hang answer": {[]Effect{HangAnswer()}, true, 0, true, time.Minute},
		"garble":      {[]Effect{Garble()}, true, 200, true, 0},
		"hold, fail":  {[]Effect{Hold(time.Second), Fail(500)}, true, 500, false, time.Second},
		"lose later":  {[]Effect{LoseAnswer(), HoldAnswer(time.Second)}, true, 0, true, time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Cluster) {
				c.Create(t, example("a"))
				if tt.effects != nil {
					c.Fault(Requests("patch", "kopfexamples"), tt.effects...)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				_, err := mergePatch(ctx, client(t, c), "a", `{"spec":{"field":"changed"}}`)
				took := time.Since(start)
				applied := lookup(c.Get(t, examples, "default", "a"), "spec.field") == "changed"
				if (err != nil) != tt.failed || applied != tt.applied || took != tt.took || c.Requests()[0].Code != tt.code {
					t.Errorf("error %v, applied %v, code %d after %v", err, applied, c.Requests()[0].Code, took)
				}
			})
		})
	}
}

func TestFaultsAffectMatchingRequests(t *testing.T) {
	five := func(t *testing.T, c *Cluster) (codes []int) {
		for _, r := range []struct{ name, sub string }{{"a", ""}, {"a", "status"}, {"b", ""}, {"a", ""}, {"b", "status"}} {
			var sub []string
			if r.sub != "" {
				sub = append(sub, r.sub)
			}
			_, _ = mergePatch(t.Context(), client(t, c), r.name, `{}`, sub...)
			time.Sleep(time.Second)
		}
		for _, w := range c.Writes() {
			codes = append(codes, w.Code)
		}
		return codes
	}
	tests := map[string]struct {
		match Match
		want  []int
	}{
		"all":             {Writes(), []int{418, 418, 418, 418, 418}},
		"other resource":  {Writes("pods"), []int{200, 200, 200, 200, 200}},
		"other verb":      {Requests("get", ""), []int{200, 200, 200, 200, 200}},
		"nth":             {Writes("kopfexamples").Nth(2), []int{200, 418, 200, 200, 200}},
		"first":           {Writes().First(2), []int{418, 418, 200, 200, 200}},
		"from":            {Writes().From(4), []int{200, 200, 200, 418, 418}},
		"subresource":     {Requests("patch", "kopfexamples").Subresource("status"), []int{200, 418, 200, 200, 418}},
		"no subresource":  {Requests("patch", "").Subresource(""), []int{418, 200, 418, 418, 200}},
		"object":          {Requests("", "").Object("default", "b"), []int{200, 200, 418, 200, 418}},
		"nth of object":   {Requests("", "").Object("default", "b").Nth(2), []int{200, 200, 200, 200, 418}},
		"other namespace": {Requests("", "").Object("kube-system", ""), []int{200, 200, 200, 200, 200}},
		"for some time":   {Writes().During(2 * time.Second), []int{418, 418, 200, 200, 200}},
		"where":           {Writes().Where(func(r Request) bool { return r.Name == "a" && r.Subresource == "" }), []int{418, 200, 200, 418, 200}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Cluster) {
				c.Create(t, example("a"))
				c.Create(t, example("b"))
				f := c.Fault(tt.match, Fail(418))
				if diff := cmp.Diff(tt.want, five(t, c)); diff != "" {
					t.Errorf("-want, +got:\n%s", diff)
				}
				struck := 0
				for _, code := range tt.want {
					if code == 418 {
						struck++
					}
				}
				if f.Struck() != struck {
					t.Errorf("struck %d, want %d", f.Struck(), struck)
				}
			})
		})
	}
}

func TestAStoppedFaultReleasesRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		f := c.Fault(Writes(), Hang())
		go func() { time.Sleep(time.Hour); f.Stop(); f.Stop() }()
		start := time.Now()
		for range 2 {
			if _, err := mergePatch(t.Context(), client(t, c), "a", `{}`); err != nil {
				t.Error(err)
			}
		}
		if time.Since(start) != time.Hour {
			t.Errorf("after %v", time.Since(start))
		}
	})
}

func TestAnExpiredFaultReleasesRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		c.Fault(Writes().During(time.Minute), HangAnswer())
		start := time.Now()
		if _, err := mergePatch(t.Context(), client(t, c), "a", `{}`); err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestBeforeAndAfterRunAroundAWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Create(t, example("a"))
		var got []string
		look := func(when string) func(Request) {
			return func(r Request) {
				got = append(got, when+" "+lookup(c.Get(t, examples, "default", "a"), "spec.field")+" "+http.StatusText(r.Code))
			}
		}
		c.Fault(Writes().First(1), Before(look("before")), After(look("after")))
		c.Fault(Writes().Nth(2), After(look("lost")), LoseAnswer())
		c.Fault(Writes().Nth(3), Before(look("dropped")), Drop())
		for _, value := range []string{"1", "2", "3"} {
			_, _ = mergePatch(t.Context(), client(t, c), "a", `{"spec":{"field":"`+value+`"}}`)
		}
		if diff := cmp.Diff([]string{"before value ", "after 1 OK", "lost 2 ", "dropped 2 "}, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}

// A test can stop an operator exactly at its n-th write, before or after the write.
func TestAClientCrashesAtAWrite(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for name, effects := range map[string]func(crash func(Request)) []Effect{
			"before": func(crash func(Request)) []Effect { return []Effect{Before(crash), Drop()} },
			"after":  func(crash func(Request)) []Effect { return []Effect{After(crash), LoseAnswer()} },
		} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *Cluster) {
					ctx, cancel := context.WithCancel(t.Context())
					c.Fault(Writes().Nth(n), effects(func(Request) { cancel() })...)
					for _, name := range []string{"a", "b", "c"} {
						if _, err := client(t, c).Create(ctx, example(name), metav1.CreateOptions{}); err != nil {
							break
						}
					}
					want := n
					if name == "before" {
						want--
					}
					if got := len(c.List(t, examples, "")); got != want || len(c.Writes()) != n {
						t.Errorf("write %d: %d objects, want %d; %d writes", n, got, want, len(c.Writes()))
					}
				})
			})
		}
	}
}
