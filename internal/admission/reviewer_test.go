package admission

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// reviewOf returns a review of an operation on an example.
func reviewOf(operation string, fields map[string]any) map[string]any {
	object := map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": "x", "namespace": "default", "uid": "u1", "labels": map[string]any{"a": "1"}, "annotations": map[string]any{"gone": "y"}},
		"spec":     map[string]any{"field": "value"},
	}
	request := map[string]any{
		"uid":       "1ca13837",
		"kind":      map[string]any{"group": "kopf.dev", "version": "v1", "kind": "KopfExample"},
		"resource":  map[string]any{"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
		"name":      "x",
		"namespace": "default",
		"operation": operation,
		"userInfo":  map[string]any{"username": "admin", "groups": []any{"system:masters"}},
		"object":    object,
		"oldObject": nil,
		"dryRun":    false,
	}
	switch operation {
	case "UPDATE":
		request["oldObject"] = object
	case "DELETE":
		request["object"], request["oldObject"] = nil, object
	}
	for key, v := range fields {
		request[key] = v
	}
	return map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
}

type handlerFunc = func(ctx context.Context, r *handler.Request) error

// calling returns a review handler that calls the function.
func calling(id string, a handler.Admission, fn handlerFunc) *handler.Handler {
	h := validating(id, "kopfexamples", a)
	h.Call = fn
	return h
}

func newTestReviewer(handlers ...*handler.Handler) *Reviewer {
	o := DefaultReviewerOptions()
	o.Log = slog.New(slog.DiscardHandler)
	v := NewReviewer(handlers, o)
	v.Discovered([]kind.Info{examples, configMaps})
	return v
}

// ask sends a review to a webhook.
func ask(t *testing.T, v http.Handler, path string, review any) (int, string) {
	t.Helper()
	raw, ok := review.(string)
	if !ok {
		encoded, err := json.Marshal(review)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(encoded)
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(raw)))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// answered sends a review and expects a review as the response.
func answered(t *testing.T, v http.Handler, path string, review any) outgoing {
	t.Helper()
	code, body := ask(t, v, path, review)
	var out outgoing
	if err := json.Unmarshal([]byte(body), &out); code != http.StatusOK || err != nil {
		t.Fatalf("got %d %s (%v)", code, body, err)
	}
	return out
}

func TestResponsesEqualThoseOfKopf(t *testing.T) {
	v := newTestReviewer(
		calling("warn", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
			r.Review.Warn("careful")
			return nil
		}),
		calling("deny", handler.Admission{}, func(context.Context, *handler.Request) error {
			return &handler.DeniedError{Code: 499, Err: fmt.Errorf("%s", "Bad field.")}
		}),
		calling("change", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
			r.Patch.Set(map[string]any{"a": 1}, "status")
			r.Patch.Set(nil, "metadata", "annotations", "gone")
			r.Patch.Set("y", "metadata", "labels", "x")
			r.Patch.Edit(func(fields map[string]any) { fields["spec"].(map[string]any)["added"] = []any{1, 2} })
			return nil
		}),
	)
	for path, want := range map[string]string{
		"/warn": `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "1ca13837", "allowed": true, "warnings": ["careful"]}}`,
		"/deny": `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": "1ca13837", "allowed": false, "status": {"message": "Bad field.", "code": 499}}}`,
	} {
		if code, body := ask(t, v, path, reviewOf("CREATE", nil)); code != 200 || !cmp.Equal(asJSON(t, body), asJSON(t, want)) {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
	out := answered(t, v, "/change", reviewOf("CREATE", nil))
	want := asJSON(t, `[{"op":"remove","path":"/metadata/annotations"},{"op":"add","path":"/metadata/labels/x","value":"y"},
		{"op":"add","path":"/spec/added","value":[1,2]},{"op":"add","path":"/status","value":{"a":1}}]`)
	if d := cmp.Diff(want, asJSON(t, string(out.Response.Patch))); d != "" || out.Response.PatchType != "JSONPatch" || !out.Response.Allowed {
		t.Errorf("got %+v: %s", out.Response, d)
	}
}

func TestResponsesHaveTheVersionOfTheReview(t *testing.T) {
	v := newTestReviewer(validating("v", "kopfexamples", handler.Admission{}))
	review := reviewOf("CREATE", nil)
	review["apiVersion"] = "admission.k8s.io/v1beta1"
	if out := answered(t, v, "/v", review); out.APIVersion != "admission.k8s.io/v1beta1" || !out.Response.Allowed {
		t.Errorf("got %+v", out)
	}
}

func TestHandlersSeeTheWholeReview(t *testing.T) {
	var seen *handler.Request
	v := newTestReviewer(calling("v", handler.Admission{Subresource: "status"}, func(_ context.Context, r *handler.Request) error {
		seen = r
		return nil
	}))
	old := map[string]any{"metadata": map[string]any{"name": "x", "uid": "u1"}, "spec": map[string]any{"field": "before"}}
	review := reviewOf("UPDATE", map[string]any{"dryRun": true, "subResource": "status", "oldObject": old})
	answered(t, v, "/v", review)
	rv := seen.Review
	if !rv.DryRun || rv.Operation != "UPDATE" || rv.Subresource != "status" || rv.User.Username != "admin" || rv.UID != "1ca13837" || rv.Kind.Kind != "KopfExample" {
		t.Errorf("got %+v", rv)
	}
	if seen.Body.Name != "x" || rv.Old.UID != "u1" || seen.Resource.Plural != "kopfexamples" || seen.Memos == nil {
		t.Errorf("got %+v", seen)
	}
	if got := rv.Diff().At("spec", "field"); len(got) != 1 || got[0].Op != diff.Change || got[0].Old != "before" || got[0].New != "value" {
		t.Errorf("diff: got %v", got)
	}

	answered(t, newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		seen = r
		return nil
	})), "/v", reviewOf("DELETE", nil))
	if seen.Body.Name != "x" || seen.Review.New != nil || seen.Review.Old == nil {
		t.Errorf("deletion: got %+v", seen.Review)
	}
}

func TestOnlyMatchingHandlersAreCalled(t *testing.T) {
	no := handler.DeniedError{Err: errors.New("asked")}
	deny := func(context.Context, *handler.Request) error { return &no }
	with := func(change func(*handler.Handler), a handler.Admission) *handler.Handler {
		h := calling("v", a, deny)
		if change != nil {
			change(h)
		}
		return h
	}
	scale := map[string]any{"subResource": "scale", "kind": map[string]any{"group": "autoscaling", "version": "v1", "kind": "Scale"}}
	for name, c := range map[string]struct {
		handler   *handler.Handler
		operation string
		fields    map[string]any
		asked     bool
	}{
		"all operations":                       {with(nil, handler.Admission{}), "DELETE", nil, true},
		"declared operations":                  {with(nil, handler.Admission{Operations: []string{"CREATE", "UPDATE"}}), "UPDATE", nil, true},
		"undeclared operations":                {with(nil, handler.Admission{Operations: []string{"CREATE"}}), "UPDATE", nil, false},
		"mutating, for a deletion":             {with(nil, handler.Admission{Mutating: true}), "DELETE", nil, false},
		"mutating, for deletions among others": {with(nil, handler.Admission{Mutating: true, Operations: []string{"CREATE", "DELETE"}}), "DELETE", nil, false},
		"mutation of deletions":                {with(nil, handler.Admission{Mutating: true, Operations: []string{"DELETE"}}), "DELETE", nil, true},
		"no subresources":                      {with(nil, handler.Admission{}), "UPDATE", map[string]any{"subResource": "status"}, false},
		"this subresource":                     {with(nil, handler.Admission{Subresource: "status"}), "UPDATE", map[string]any{"subResource": "status"}, true},
		"not the object itself":                {with(nil, handler.Admission{Subresource: "status"}), "UPDATE", nil, false},
		"any subresource":                      {with(nil, handler.Admission{Subresource: "*"}), "UPDATE", scale, true},
		"and the object itself":                {with(nil, handler.Admission{Subresource: "*"}), "UPDATE", nil, true},
		"no scales for types":                  {with(nil, handler.Admission{Subresource: "*", Typed: true}), "UPDATE", scale, false},
		"types":                                {with(nil, handler.Admission{Subresource: "*", Typed: true}), "UPDATE", map[string]any{"subResource": "status"}, true},
		"labels": {with(func(h *handler.Handler) {
			h.Criteria.Labels = []handler.Key{{Name: "a", Match: handler.Absent}}
		}, handler.Admission{}), "CREATE", nil, false},
		"a field": {with(func(h *handler.Handler) {
			h.Change = &handler.Change{Path: []string{"spec", "field"}, Value: handler.Equal("value")}
		}, handler.Admission{}), "CREATE", nil, true},
		"a field with another value": {with(func(h *handler.Handler) {
			h.Change = &handler.Change{Path: []string{"spec", "field"}, Value: handler.Equal("other")}
		}, handler.Admission{}), "CREATE", nil, false},
		"a condition": {with(func(h *handler.Handler) {
			h.When = []func(*handler.Request) bool{func(r *handler.Request) bool { return r.Review.User.Username != "admin" }}
		}, handler.Admission{}), "CREATE", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := answered(t, newTestReviewer(c.handler), "/v", reviewOf(c.operation, c.fields))
			if out.Response.Allowed == c.asked {
				t.Errorf("got %+v, want asked: %v", out.Response, c.asked)
			}
		})
	}
}

func TestTheMostDeliberateErrorIsReported(t *testing.T) {
	failing := func(mutating bool, err error) *handler.Handler {
		return calling("v", handler.Admission{Mutating: mutating}, func(context.Context, *handler.Request) error { return err })
	}
	plain := errors.New("plain")
	temporary := &handler.TemporaryError{Err: errors.New("temporary")}
	permanent := &handler.PermanentError{Err: errors.New("permanent")}
	denial := &handler.DeniedError{Code: 403, Err: errors.New("denied")}
	for name, c := range map[string]struct {
		errs []error
		want status
	}{
		"plain":                      {[]error{plain}, status{"plain", 500}},
		"without a text":             {[]error{errors.New("")}, status{"*errors.errorString", 500}},
		"temporary before plain":     {[]error{plain, temporary}, status{"temporary", 500}},
		"permanent before temporary": {[]error{temporary, permanent, plain}, status{"permanent", 500}},
		"denials before all":         {[]error{permanent, temporary, denial}, status{"denied", 403}},
		"without a code":             {[]error{&handler.DeniedError{Err: errors.New("no")}}, status{"no", 500}},
		"the first of its class":     {[]error{denial, &handler.DeniedError{Err: errors.New("later")}}, status{"denied", 403}},
		"undecodable":                {[]error{&handler.UndecodableError{Err: errors.New("spec.size")}}, status{"the object does not fit the handler's type: spec.size", 422}},
	} {
		t.Run(name, func(t *testing.T) {
			var handlers handler.Set
			for _, err := range c.errs {
				handlers = append(handlers, failing(false, err))
			}
			for _, path := range []string{"/v", "/"} { // one by id, and all handlers
				out := answered(t, newTestReviewer(handlers...), path, reviewOf("CREATE", nil))
				if out.Response.Allowed || *out.Response.Status != c.want {
					t.Errorf("got %+v", out.Response.Status)
				}
			}
		})
	}
}

func TestPanicsDenyTheReview(t *testing.T) {
	inHandler := calling("v", handler.Admission{}, func(context.Context, *handler.Request) error { panic("oops") })
	inFilter := validating("v", "kopfexamples", handler.Admission{})
	inFilter.When = []func(*handler.Request) bool{func(*handler.Request) bool { panic("oops") }}
	inEdit := calling("v", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
		r.Patch.Edit(func(map[string]any) { panic("oops") })
		return nil
	})
	for name, h := range map[string]*handler.Handler{"handler": inHandler, "filter": inFilter, "edit": inEdit} {
		t.Run(name, func(t *testing.T) {
			var lines strings.Builder
			o := DefaultReviewerOptions()
			o.Log = slog.New(slog.NewTextHandler(&lines, nil))
			v := NewReviewer(handler.Set{h}, o)
			v.Discovered([]kind.Info{examples})
			out := answered(t, v, "/v", reviewOf("CREATE", nil))
			if out.Response.Allowed || *out.Response.Status != (status{"the admission handler panicked; see the operator's log", 500}) {
				t.Errorf("got %+v", out.Response)
			}
			if !strings.Contains(lines.String(), "oops") || !strings.Contains(lines.String(), "reviewer_test.go") {
				t.Errorf("the log has no stack: %s", lines.String())
			}
			_, stack, _ := strings.Cut(lines.String(), "[running]:\\n")
			if first, _, _ := strings.Cut(stack, "\\n"); !strings.Contains(first, "TestPanicsDeny") {
				t.Errorf("the stack does not begin with the code that panicked: %s", first)
			}
		})
	}
}

func TestADenialIsLoggedAtInfoAndOtherFailuresAsErrors(t *testing.T) {
	for want, err := range map[string]error{
		"level=INFO":  &handler.DeniedError{Code: 403, Err: errors.New("too small")},
		"level=ERROR": errors.New("no database"),
	} {
		for _, mutating := range []bool{false, true} {
			var lines strings.Builder
			o := DefaultReviewerOptions()
			o.Log = slog.New(slog.NewTextHandler(&lines, nil))
			v := NewReviewer(handler.Set{calling("v", handler.Admission{Mutating: mutating}, func(context.Context, *handler.Request) error { return err })}, o)
			v.Discovered([]kind.Info{examples})
			if out := answered(t, v, "/v", reviewOf("CREATE", nil)); out.Response.Allowed {
				t.Errorf("%v: allowed", err)
			}
			if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, want) {
				t.Errorf("%v: want one line with %s, got %s", err, want, got)
			}
		}
	}
}

func TestPatchesOfDeniedReviewsAndValidationsAreDropped(t *testing.T) {
	change := func(err error) handlerFunc {
		return func(_ context.Context, r *handler.Request) error {
			r.Patch.Set("y", "metadata", "labels", "x")
			return err
		}
	}
	v := newTestReviewer(
		calling("denied", handler.Admission{Mutating: true}, change(errors.New("no"))),
		calling("validating", handler.Admission{}, change(nil)),
		calling("same", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
			r.Patch.Set("1", "metadata", "labels", "a")
			return nil
		}),
	)
	for _, path := range []string{"/denied", "/validating", "/same"} {
		if out := answered(t, v, path, reviewOf("CREATE", nil)); out.Response.Patch != nil || out.Response.PatchType != "" {
			t.Errorf("%s: got %s", path, base64.StdEncoding.EncodeToString(out.Response.Patch))
		}
	}
}

// Network peers may send any user, and handlers may copy it.
func TestTheUserOfAReviewIsBounded(t *testing.T) {
	const frame = `{"request":{"operation":"CREATE","object":{},"userInfo":{"username":"` + `"}}}`
	for length, fits := range map[int]bool{1: true, 200 << 10: true, maxUser: false} {
		user := strings.Repeat("<", length)
		in, err := decode([]byte(strings.Replace(frame, `""`, `"`+user+`"`, 1)))
		if fits && (err != nil || in.Request.user.Username != user) || !fits && err == nil {
			t.Errorf("a user of %d bytes: %v", length, err)
		}
	}
}

func TestMalformedReviewsAreRefused(t *testing.T) {
	v := newTestReviewer(validating("some_id", "kopfexamples", handler.Admission{}))
	v.MaxBody = 2000
	without := func(key string) map[string]any { return reviewOf("CREATE", map[string]any{key: nil}) }
	elsewhere := map[string]any{"resource": map[string]any{"group": "kopf.dev", "version": "v2", "resource": "kopfexamples"}}
	for name, c := range map[string]struct {
		path   string
		review any
		want   int
	}{
		"fine":                   {"/some_id", reviewOf("CREATE", nil), 200},
		"as behind a service":    {"/some-id", reviewOf("CREATE", nil), 200},
		"no id":                  {"/", reviewOf("CREATE", nil), 200},
		"an unknown id":          {"/other", reviewOf("CREATE", nil), 404},
		"an unknown resource":    {"/some_id", reviewOf("CREATE", elsewhere), 404},
		"no JSON":                {"/some_id", "{", 400},
		"an empty body":          {"/some_id", "", 400},
		"a list":                 {"/some_id", "[]", 400},
		"a number for a name":    {"/some_id", reviewOf("CREATE", map[string]any{"operation": 1}), 400},
		"no request":             {"/some_id", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, 400},
		"another kind":           {"/some_id", `{"apiVersion":"v1","kind":"Pod"}`, 400},
		"no user":                {"/some_id", without("userInfo"), 400},
		"a list as the user":     {"/some_id", reviewOf("CREATE", map[string]any{"userInfo": []any{}}), 400},
		"no object":              {"/some_id", without("object"), 400},
		"no operation":           {"/some_id", without("operation"), 400},
		"a string as the object": {"/some_id", reviewOf("CONNECT", map[string]any{"object": "x"}), 400},
		"too long":               {"/some_id", `{"request":{` + strings.Repeat(" ", 2000), 413},
	} {
		t.Run(name, func(t *testing.T) {
			if code, body := ask(t, v, c.path, c.review); code != c.want {
				t.Errorf("got %d %s, want %d", code, body, c.want)
			}
		})
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/some_id", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: got %d", w.Code)
	}
	if code, _ := ask(t, NewReviewer(nil, v.ReviewerOptions), "/x", reviewOf("CREATE", nil)); code != http.StatusServiceUnavailable {
		t.Errorf("before the discovery: got %d", code)
	}
}

func TestReviewsTimeOut(t *testing.T) {
	for path, want := range map[string]time.Duration{
		"/v":              30 * time.Second, // the reviewer's own limit
		"/v?timeout=10s":  9 * time.Second,  // that of the API server, minus time for the response
		"/v?timeout=5s":   4500 * time.Millisecond,
		"/v?timeout=100s": 30 * time.Second,
		"/v?timeout=oops": 30 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			v := newTestReviewer(calling("v", handler.Admission{}, func(ctx context.Context, _ *handler.Request) error {
				<-ctx.Done()
				return ctx.Err()
			}))
			began := time.Now()
			out := answered(t, v, path, reviewOf("CREATE", nil))
			if got := time.Since(began); got != want || out.Response.Allowed || out.Response.Status.Code != 500 {
				t.Errorf("%s: got %v after %v, want %v", path, out.Response, got, want)
			}
		})
	}
}

func TestConcurrentReviewsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		}))
		v.lanes.slots.size = 3
		codes := make(chan int)
		for range 12 {
			go func() {
				code, _ := ask(t, v, "/v?timeout=4s", reviewOf("CREATE", nil))
				codes <- code
			}()
		}
		got := map[int]int{}
		for range 12 {
			got[<-codes]++
		}
		if most.Load() != 3 {
			t.Errorf("%d ran at the same time", most.Load())
		}
		// In 3.6 s, four rounds of one second can start.
		if d := cmp.Diff(map[int]int{200: 12}, got); d != "" {
			t.Error(d)
		}

		var others sync.WaitGroup
		defer others.Wait()
		for range 3 { // these reviews time out
			others.Go(func() { ask(t, v, "/v", reviewOf("CREATE", nil)) })
		}
		synctest.Wait()
		if code, _ := ask(t, v, "/v?timeout=500ms", reviewOf("CREATE", nil)); code != http.StatusServiceUnavailable {
			t.Errorf("without a slot: got %d", code)
		}
	})
}

func TestMemosAreSharedExceptForCreations(t *testing.T) {
	shared := &handler.Memos{}
	var seen *handler.Memos
	v := newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		seen = r.Memos
		return nil
	}))
	v.Memos = func(_ kind.Info, uid string) *handler.Memos {
		if uid != "u1" {
			return nil
		}
		return shared
	}
	for operation, want := range map[string]bool{"CREATE": false, "UPDATE": true, "DELETE": true} {
		answered(t, v, "/v", reviewOf(operation, nil))
		if (seen == shared) != want || seen == nil {
			t.Errorf("%s: shared is %v", operation, !want)
		}
	}
}

// The API server rejects a changed uid, but only after it has called mutating webhooks.
func TestAForgedUIDGivesNoAccessToTheMemosOfAnotherObject(t *testing.T) {
	var uids []string
	v := newTestReviewer(calling("v", handler.Admission{Mutating: true}, func(context.Context, *handler.Request) error { return nil }))
	v.Memos = func(_ kind.Info, uid string) *handler.Memos {
		uids = append(uids, uid)
		return nil
	}
	answered(t, v, "/v", reviewOf("UPDATE", map[string]any{"object": map[string]any{"metadata": map[string]any{"name": "x", "uid": "u2"}}}))
	if !cmp.Equal(uids, []string{"u1"}) {
		t.Errorf("the review got the memos of %q", uids)
	}
}

func TestWarningsAreOneLine(t *testing.T) {
	v := newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		r.Review.Warn("two\r\nlines")
		r.Review.Warn("one")
		return errors.New("no")
	}))
	out := answered(t, v, "/v", reviewOf("CREATE", nil))
	if d := cmp.Diff([]string{"two lines", "one"}, out.Response.Warnings); d != "" {
		t.Error(d)
	}
}

func TestClientsCannotFloodTheLog(t *testing.T) {
	var text bytes.Buffer
	v := newTestReviewer(validating("v", "kopfexamples", handler.Admission{}))
	v.Log = slog.New(slog.NewTextHandler(&text, nil))
	for range 1000 {
		if _, body := ask(t, v, "/"+strings.Repeat("x", 5000), "{}"); len(body) > 300 {
			t.Fatalf("the response has %d bytes", len(body))
		}
		ask(t, v, "/v", `{"apiVersion":"`+strings.Repeat("y", 5000)+`"}`)
	}
	if n := strings.Count(text.String(), "Refused an admission review."); n != 10 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(text.String()) {
		if strings.Count(line, "x") > 450 || strings.Count(line, "y") > 250 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	}
}

func TestReviewsAreObserved(t *testing.T) {
	v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
		return &handler.DeniedError{Code: 422, Err: fmt.Errorf("no")}
	}))
	var seen []Observation
	v.Observe = func(o Observation) { o.Duration = 0; seen = append(seen, o) }
	ask(t, v, "/v", reviewOf("CREATE", nil))
	ask(t, v, "/other", reviewOf("CREATE", nil))
	if d := cmp.Diff([]Observation{{ID: "v", Code: 422}, {Code: 404}}, seen); d != "" {
		t.Error(d)
	}
}

func TestLeaveClosesConnections(t *testing.T) {
	v := newTestReviewer(calling("check", handler.Admission{}, func(context.Context, *handler.Request) error { return nil }))
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(v)
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	ask := func() {
		t.Helper()
		raw, _ := json.Marshal(reviewOf("CREATE", nil))
		resp, err := server.Client().Post(server.URL+"/check", "application/json", bytes.NewReader(raw))
		if err != nil || resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
			t.Fatalf("got %v (%v)", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	for range 3 {
		ask()
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections before", got)
	}
	v.Leave()
	ask()
	eventually := time.Now().Add(10 * time.Second)
	for connections.Load() == 1 && time.Now().Before(eventually) {
		ask()
	}
	if connections.Load() == 1 {
		t.Error("the connection was not closed")
	}
}

func TestHandlersGetTheHostOfTheClient(t *testing.T) {
	for address, want := range map[string]string{"10.0.0.1:1234": "10.0.0.1", "[fd00::1]:1234": "fd00::1", "@": "@"} {
		got := ""
		v := newTestReviewer(calling("look", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
			got = r.Review.Peer
			return nil
		}))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/look", bytes.NewReader(mustJSON(reviewOf("CREATE", nil))))
		r.RemoteAddr = address
		r.Header.Set("X-Forwarded-For", "10.0.0.9") // any client can send it
		v.ServeHTTP(httptest.NewRecorder(), r)
		if got != want {
			t.Errorf("%s: the host is %q, want %q", address, got, want)
		}
	}
}
