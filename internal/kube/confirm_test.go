package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/object"
)

func TestAWriteWithoutAResponseIsConfirmedByARead(t *testing.T) {
	newer := strings.Replace(onePod, `"5"`, `"6"`, 1)
	late := func(after time.Duration, s scripted) scripted {
		return func(req *http.Request) (*http.Response, error) {
			if err := backoff.Sleep(req.Context(), after); err != nil {
				return nil, err
			}
			return s(req)
		}
	}
	cases := map[string]struct {
		script  []scripted
		took    time.Duration
		version string
		err     func(error) bool
		times   []string
	}{
		"effect found": {
			script: []scripted{never, ok(newer)}, took: 5 * time.Second, version: "6", times: []string{"0s", "5s"},
		},
		"effect found later": {
			script: []scripted{never, ok(onePod), refusal(503, "ServiceUnavailable"), ok(newer)}, took: 15 * time.Second, version: "6",
			times: []string{"0s", "5s", "10s", "15s"},
		},
		"object deleted": {
			script: []scripted{never, refusal(404, "NotFound")}, took: 5 * time.Second, err: apierrors.IsNotFound, times: []string{"0s", "5s"},
		},
		"response in time": {
			script: []scripted{late(4*time.Second, ok(newer))}, took: 4 * time.Second, version: "6", times: []string{"0s"},
		},
		"response after the first read": {
			script: []scripted{late(7*time.Second, ok(newer)), ok(onePod)}, took: 7 * time.Second, version: "6", times: []string{"0s", "5s"},
		},
		"response during the read": {
			script: []scripted{late(7*time.Second, ok(newer)), never}, took: 7 * time.Second, version: "6", times: []string{"0s", "5s"},
		},
		"neither response nor effect": {
			script: []scripted{never, ok(onePod)}, took: 30 * time.Second,
			err:   func(err error) bool { var u *UnknownOutcomeError; return errors.As(err, &u) },
			times: []string{"0s", "5s", "10s", "15s", "20s", "25s", "30s"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := answers(test.script...)
				c, _ := f.client(t)
				ctx := Confirming(t.Context(), func(b *object.Body) bool { return b.ResourceVersion == "6" })
				began := time.Now()
				target := podA
				target.Subresource = "status"
				body, err := c.Patch(ctx, target, types.MergePatchType, []byte(`{}`))
				if took := time.Since(began); took != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				switch {
				case test.err != nil && !test.err(err), test.err == nil && err != nil:
					t.Errorf("error: %v", err)
				case err == nil && body.ResourceVersion != test.version:
					t.Errorf("got version %s, want %s", body.ResourceVersion, test.version)
				}
				times := f.times()
				if diff := cmp.Diff(strings.TrimSuffix(strings.Join(test.times, " "), " 30s"), strings.TrimSuffix(strings.Join(times, " "), " 30s")); diff != "" {
					t.Errorf("requests: -want +got\n%s", diff)
				}
				for _, r := range f.requests[1:] {
					if !strings.HasSuffix(r, " GET /base/api/v1/namespaces/ns/pods/a") {
						t.Errorf("unexpected confirmation by %s", r)
					}
				}
			})
		})
	}
}

// The read uses another connection and needs no slot.
func TestTheConfirmingReadUsesAnotherConnection(t *testing.T) {
	t.Parallel() // takes 5 s of real time
	var mu sync.Mutex
	from := map[string]string{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.Method] = r.RemoteAddr + " " + r.Proto
		mu.Unlock()
		if r.Method == http.MethodPatch {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice a closed connection
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(onePod))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	o := DefaultOptions()
	o.InFlight = InFlight{Start: 1, Min: 1, Max: 1}
	c, err := NewClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(Confirming(t.Context(), func(*object.Body) bool { return true }), 20*time.Second)
	defer cancel()
	if _, err := c.Patch(ctx, podA, types.MergePatchType, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if from["PATCH"] == from["GET"] {
		t.Errorf("got %v", from)
	}
}
