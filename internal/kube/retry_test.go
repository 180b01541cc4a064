package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Requests of the tests.
func get(ctx context.Context, c *Client) error {
	_, err := c.Get(ctx, podA)
	return err
}

func patchIt(ctx context.Context, c *Client) error {
	_, err := c.Patch(ctx, podA, types.MergePatchType, []byte(`{}`))
	return err
}

// Admission control chooses the codes of denials.
const (
	denial       = `{"kind":"Status","reason":"InternalError","message":"admission webhook \"x.example.com\" denied the request: no"}`
	policyDenial = `{"kind":"Status","reason":"Unauthorized","message":"pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"}`
)

func applyIt(ctx context.Context, c *Client) error {
	_, err := c.Patch(ctx, podA, types.ApplyPatchType, []byte(`{}`))
	return err
}

func create(ctx context.Context, c *Client) error {
	_, err := c.Create(ctx, Target{Info: pods, Namespace: "ns"}, []byte(`{}`))
	return err
}

func remove(ctx context.Context, c *Client) error { return c.Delete(ctx, podA, DeleteOptions{}) }

func removeByUID(ctx context.Context, c *Client) error {
	return c.Delete(ctx, podA, DeleteOptions{UID: "1"})
}

func list(ctx context.Context, c *Client) error {
	_, err := c.List(ctx, pods, "ns", ListOptions{}, nil)
	return err
}

func TestRetries(t *testing.T) {
	const notEnd = "{"
	success := ok(onePod)
	cases := map[string]struct {
		request func(context.Context, *Client) error
		script  []scripted
		adjust  func(*Options)
		at      []string // when requests were made
		want    string   // prefix of the error
	}{
		"read: server errors":             {request: get, script: []scripted{refusal(500, ""), refusal(503, ""), refusal(504, ""), success}, at: []string{"0s", "1s", "2s", "4s"}},
		"read: connection errors":         {request: get, script: []scripted{breaks(errDial), breaks(errReset), cutShort(notEnd), success}, at: []string{"0s", "1s", "2s", "4s"}},
		"read: no response":               {request: get, script: []scripted{never, success}, at: []string{"0s", "31s"}},
		"read: malformed response":        {request: get, script: []scripted{ok("nonsense"), success}, at: []string{"0s", "1s"}},
		"read: all attempts fail":         {request: get, script: []scripted{refusal(503, "")}, at: []string{"0s", "1s", "2s", "4s", "7s", "12s", "17s", "20s", "25s", "30s", "33s", "38s", "43s", "48s", "53s", "54s"}, want: "get pods.v1 ns/a: no way"},
		"read: unreachable":               {request: get, script: []scripted{breaks(errDial)}, adjust: noRetries, at: []string{"0s"}, want: "get pods.v1 ns/a: the API server https://server/base/ cannot be reached: dial tcp: connection refused"},
		"read: forbidden is not retried":  {request: get, script: []scripted{refusal(403, "Forbidden")}, at: []string{"0s"}, want: "get pods.v1 ns/a: no way"},
		"read: not found is not retried":  {request: get, script: []scripted{refusal(404, "NotFound")}, at: []string{"0s"}, want: "get pods.v1 ns/a: no way"},
		"read: odd status":                {request: get, script: []scripted{reply(302, "elsewhere")}, at: []string{"0s"}, want: "get pods.v1 ns/a: elsewhere"},
		"too many: header":                {request: get, script: []scripted{reply(429, "", "Retry-After", "3.9"), success}, at: []string{"0s", "3s"}},
		"too many: details":               {request: get, script: []scripted{reply(429, `{"kind":"Status","details":{"retryAfterSeconds":7}}`), success}, at: []string{"0s", "7s"}},
		"too many: no hint":               {request: get, script: []scripted{reply(429, ""), success}, at: []string{"0s", "1s"}},
		"too many: short hint":            {request: get, script: []scripted{reply(429, ""), reply(429, ""), reply(429, "", "Retry-After", "1"), success}, at: []string{"0s", "1s", "2s", "4s"}},
		"too many: short hint, obeyed":    {request: get, script: []scripted{reply(429, ""), reply(429, ""), reply(429, "", "Retry-After", "1"), success}, adjust: func(o *Options) { o.EnforceRetryAfter = true }, at: []string{"0s", "1s", "2s", "3s"}},
		"patch: explicit refusals":        {request: patchIt, script: []scripted{refusal(500, ""), refusal(503, ""), refusal(429, ""), success}, at: []string{"0s", "1s", "2s", "4s"}},
		"patch: never sent":               {request: patchIt, script: []scripted{breaks(errDial), success}, at: []string{"0s", "1s"}},
		"patch: response lost":            {request: patchIt, script: []scripted{breaks(errReset), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write may have been applied or not: read tcp"},
		"patch: response truncated":       {request: patchIt, script: []scripted{cutShort(notEnd), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write was applied, but its response could not be read: connection reset"},
		"patch: response malformed":       {request: patchIt, script: []scripted{ok("nonsense"), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write was applied, but its response could not be read: malformed response"},
		"patch: no response":              {request: patchIt, script: []scripted{never, success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write may have been applied or not: no response within 30s"},
		"patch: gateway timeout":          {request: patchIt, script: []scripted{refusal(504, "Timeout"), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write may have been applied or not: no way"},
		"patch: bad gateway":              {request: patchIt, script: []scripted{reply(502, ""), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write may have been applied or not"},
		"apply: an explicit refusal":      {request: applyIt, script: []scripted{refusal(500, ""), success}, at: []string{"0s", "1s"}},
		"apply: broken managedFields":     {request: applyIt, script: []scripted{refusal(500, ""), refusal(500, ""), success}, at: []string{"0s", "1s"}, want: "patch pods.v1 ns/a: "},
		"apply: one 500 after others":     {request: applyIt, script: []scripted{refusal(503, ""), refusal(500, ""), success}, at: []string{"0s", "1s", "2s"}},
		"apply: other refusals":           {request: applyIt, script: []scripted{refusal(503, ""), refusal(503, ""), refusal(429, ""), success}, at: []string{"0s", "1s", "2s", "4s"}},
		"denied by a webhook that fails":  {request: patchIt, script: []scripted{reply(500, denial), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: admission webhook"},
		"denied as if there is no object": {request: patchIt, script: []scripted{reply(404, denial), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: admission webhook"},
		"denied as if unauthorized":       {request: patchIt, script: []scripted{reply(401, denial), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: admission webhook"},
		"denied by a policy":              {request: patchIt, script: []scripted{reply(401, policyDenial), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: pods \"a\" is forbidden: Validating"},
		"a webhook that does not respond": {request: patchIt, script: []scripted{reply(500, `{"kind":"Status","message":"failed calling webhook \"x\": connection refused"}`), success}, at: []string{"0s", "1s"}},
		"patch: storage timeout":          {request: patchIt, script: []scripted{reply(500, `{"kind":"Status","message":"etcdserver: request timed out"}`), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: the write may have been applied or not"},
		"patch: too large to be stored":   {request: patchIt, script: []scripted{reply(500, `{"kind":"Status","message":"etcdserver: request is too large"}`), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: etcdserver: request is too large"},
		"patch: too large to be sent":     {request: patchIt, script: []scripted{reply(500, `{"kind":"Status","message":"rpc error: code = ResourceExhausted desc = trying to send message larger than max (2100000 vs. 2097152)"}`), success}, at: []string{"0s"}, want: "patch pods.v1 ns/a: rpc error"},
		"patch: conflict is not retried":  {request: patchIt, script: []scripted{refusal(409, "Conflict")}, at: []string{"0s"}, want: "patch pods.v1 ns/a: no way"},
		"create: response lost":           {request: create, script: []scripted{breaks(errReset), success}, at: []string{"0s"}, want: "create pods.v1 in ns: the write may have been applied or not"},
		"delete: response lost":           {request: remove, script: []scripted{breaks(errReset), success}, at: []string{"0s"}, want: "delete pods.v1 ns/a: the write may have been applied or not"},
		"delete by uid: response lost":    {request: removeByUID, script: []scripted{breaks(errReset), success}, at: []string{"0s", "1s"}},
		"list: before the first object":   {request: list, script: []scripted{cutShort(`{"items":[`), ok(`{"metadata":{"resourceVersion":"9"},"items":[]}`)}, at: []string{"0s", "1s"}},
		"no retries at all":               {request: get, script: []scripted{refusal(503, "")}, adjust: noRetries, at: []string{"0s"}, want: "get pods.v1 ns/a: no way"},
		"an infinite sequence":            {request: get, script: append(slices.Repeat([]scripted{refusal(503, "")}, 4), success), adjust: forEver, at: []string{"0s", "5s", "10s", "15s", "20s"}},
		"a request that cannot be written": {request: func(ctx context.Context, c *Client) error {
			_, err := c.Get(ctx, Target{Info: pods, Name: "n"})
			return err
		}, script: []scripted{success}, want: "get: pods.v1 is namespaced"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := answers(c.script...)
				if c.adjust == nil {
					c.adjust = func(*Options) {}
				}
				client, _ := f.client(t, c.adjust)
				err := c.request(t.Context(), client)
				if diff := cmp.Diff(c.at, f.times()); diff != "" {
					t.Errorf("times of requests: -want +got\n%s", diff)
				}
				switch {
				case c.want == "" && err != nil:
					t.Errorf("got the error %q", err)
				case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
					t.Errorf("got the error %q, want %q", err, c.want)
				}
				var unknown *UnknownOutcomeError
				if says := strings.Contains(c.want, "the write"); errors.As(err, &unknown) != says {
					t.Errorf("an unknown outcome: got %v, want %v", !says, says)
				}
			})
		})
	}
}

func noRetries(o *Options) { o.Backoffs = nil }

func forEver(o *Options) {
	o.Backoffs = func(yield func(time.Duration) bool) {
		for yield(10 * time.Second) {
		}
	}
}

func TestWrappedErrorsKeepTheirTypes(t *testing.T) {
	client, _ := answers(refusal(404, "NotFound")).client(t)
	if err := get(t.Context(), client); !apierrors.IsNotFound(err) {
		t.Errorf("not found: got %v", err)
	}
	client, _ = answers(breaks(errDial)).client(t, noRetries)
	var unreachable *UnreachableError
	if err := get(t.Context(), client); !errors.As(err, &unreachable) {
		t.Errorf("unreachable: got %v", err)
	}
	client, _ = answers(refusal(504, "Timeout")).client(t, noRetries)
	if err := patchIt(t.Context(), client); !apierrors.IsTimeout(err) {
		t.Errorf("timeout: got %v", err)
	}
}

func TestTheCallerCancelsARequest(t *testing.T) {
	leaving := errors.New("leaving")
	for name, c := range map[string]struct {
		script  scripted
		request func(context.Context, *Client) error
		unknown bool
	}{
		"waiting for a response":              {never, get, false},
		"waiting for the response to a write": {never, patchIt, true},
		"waiting to retry":                    {refusal(503, ""), patchIt, false},
		"waiting for credentials":             {refusal(401, ""), patchIt, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, leaving)
				defer cancel()
				client, _ := answers(c.script).client(t)
				began := time.Now()
				err := c.request(ctx, client)
				if took := time.Since(began); took != 20*time.Second {
					t.Errorf("it took %v", took)
				}
				if !errors.Is(err, leaving) {
					t.Errorf("got %v, want the cause", err)
				}
				var unknown *UnknownOutcomeError
				if got := errors.As(err, &unknown); got != c.unknown {
					t.Errorf("unknown outcome: got %v, want %v", got, c.unknown)
				}
			})
		})
	}
}

func TestFailedAttemptsAreLoggedAndObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		client, log := answers(refusal(503, ""), breaks(errDial), ok(onePod)).client(t, func(o *Options) {
			o.Observe = func(ob Observation) {
				seen = append(seen, fmt.Sprint(ob.Verb, " ", ob.Resource.Resource, " ", ob.Code))
			}
		})
		if err := patchIt(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"ERROR Request attempt #1 failed; will retry: PATCH /api/v1/namespaces/ns/pods/a -> no way",
			"ERROR Request attempt #2 failed; will retry: PATCH /api/v1/namespaces/ns/pods/a -> dial tcp: connection refused",
		}
		if diff := cmp.Diff(want, log.lines); diff != "" {
			t.Errorf("log: -want +got\n%s", diff)
		}
		if diff := cmp.Diff([]string{"patch pods 503", "patch pods 0", "patch pods 200"}, seen); diff != "" {
			t.Errorf("observed: -want +got\n%s", diff)
		}
	})
}
