package apply

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

func TestAChangeIsSentAlthoughAStaleBodyHasIt(t *testing.T) {
	s := newServer(t)
	s.object["status"] = map[string]any{"fn": "hello"}
	stale := s.body()
	s.object["status"] = map[string]any{"fn": "changed by the handler itself"}
	asked, _ := changes()
	_, err := s.applier().Apply(t.Context(), stale, asked, &patch.Patch{}, Finalizer{})
	if err != nil || s.object["status"].(map[string]any)["fn"] != "hello" {
		t.Errorf("%v: the status is %v", err, s.object["status"])
	}
}

func TestAConflictIsReportedWithTheStatesBeforeAndAfterIt(t *testing.T) {
	s := newServer(t)
	s.before = func(n int) error {
		if n > 1 {
			return nil
		}
		s.object["metadata"].(map[string]any)["annotations"] = map[string]any{"by": "another writer"}
		return apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("modified"))
	}
	asked, _ := changes()
	applier, seen := s.applier(), []string{}
	applier.Conflicted = func(before, now *object.Body) {
		seen = append(seen, fmt.Sprint(before.Annotations()["by"], " to ", now.Annotations()["by"]))
	}
	if _, err := applier.Apply(t.Context(), s.body(), asked, &patch.Patch{}, Finalizer{}); err != nil || !slices.Equal(seen, []string{"<nil> to another writer"}) {
		t.Errorf("%v: conflicts %q", err, seen)
	}
}

func TestConflictsAreRetriedAndThenReturned(t *testing.T) {
	half := func() float64 { return 0.5 }
	for _, want := range []struct {
		conflicts int
		random    jitter.Source
		took      time.Duration
		done      bool
	}{
		{1, nil, 0, true}, {2, nil, 50 * time.Millisecond, true},
		{4, nil, 350 * time.Millisecond, true}, {5, nil, 350 * time.Millisecond, false},
		{1, half, 0, true}, {4, half, 315 * time.Millisecond, true},
	} {
		conflicts := want.conflicts
		t.Run(fmt.Sprintf("%d, with jitter %t", conflicts, want.random != nil), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.before = func(n int) error {
					if n <= conflicts {
						return apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("modified"))
					}
					return nil
				}
				asked, _ := changes()
				begun := time.Now()
				applier := s.applier()
				applier.Jitter = want.random
				_, err := applier.Apply(t.Context(), s.body(), asked, &patch.Patch{}, Finalizer{})
				if (err == nil) != want.done || !want.done && !apierrors.IsConflict(err) || time.Since(begun) != want.took {
					t.Errorf("after %v: %v", time.Since(begun), err)
				}
			})
		})
	}
}

func TestAForbiddenChangeIsSentTwiceASecondApart(t *testing.T) {
	for name, lifted := range map[string]bool{"lifted": true, "refused": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.before = func(n int) error {
					if n == 1 || !lifted {
						return apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("exceeded quota"))
					}
					return nil
				}
				asked, _ := changes()
				begun := time.Now()
				_, err := s.applier().Apply(t.Context(), s.body(), asked, &patch.Patch{}, Finalizer{})
				if Refused(err) == lifted || len(s.requests) != 2 || time.Since(begun) != time.Second {
					t.Errorf("after %v and %q: %v", time.Since(begun), s.requests, err)
				}
			})
		})
	}
}

func TestFinalizerRemovalIsDecidedAgainAfterAConflict(t *testing.T) {
	for name, still := range map[string]bool{"still right": true, "not any more": false} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.object["metadata"].(map[string]any)["finalizers"] = []any{"f", "other"}
			body := s.body()
			s.touch() // by another client
			f := Finalizer{Name: "f", Remove: true, Still: func(now *object.Body) bool {
				return now.ResourceVersion == body.ResourceVersion || still
			}}
			after, err := s.applier().Apply(t.Context(), body, &patch.Patch{}, &patch.Patch{}, f)
			if err != nil || (len(after.Finalizers()) == 1) != still {
				t.Errorf("%v: the finalizers are %q", err, after.Finalizers())
			}
		})
	}
}

func TestRefused(t *testing.T) {
	code := func(code int32) error {
		return fmt.Errorf("patch: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}})
	}
	for want, errs := range map[bool][]error{
		true:  {code(400), code(403), code(405), code(413), code(415), code(422), &encodingError{errors.New("NaN")}},
		false: {nil, code(401), code(404), code(408), code(409), code(429), code(500), code(503), &kube.UnknownOutcomeError{Err: code(422)}, errors.New("no route")},
	} {
		for _, err := range errs {
			if Refused(err) != want {
				t.Errorf("%v: want %v", err, want)
			}
		}
	}
}
