package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// cluster is an API server with users by token, and paths by user.
type cluster struct {
	mu    sync.Mutex
	users map[string]string
	may   map[string][]string
	fails string        // the resource whose reviews fail
	raw   string        // a response to all reviews; "" means the proper one
	slow  time.Duration // of each review

	asked          []string // "tokenreviews TOKEN" and "subjectaccessreviews USER PATH"
	running, peak  int
	spec           map[string]any // of the last access review
	hasAudiences   bool
	failWithSecret bool
}

func (c *cluster) Create(ctx context.Context, t kube.Target, body []byte, _ ...kube.Param) (*object.Body, error) {
	c.mu.Lock()
	c.running++
	c.peak = max(c.peak, c.running)
	c.mu.Unlock()
	select {
	case <-time.After(c.slow):
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var r struct {
		APIVersion, Kind string
		Spec             map[string]any
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	status := map[string]any{}
	switch plural := t.Info.Plural; plural {
	case "tokenreviews":
		token := r.Spec["token"].(string)
		c.asked = append(c.asked, plural+" "+token)
		_, c.hasAudiences = r.Spec["audiences"]
		if c.failWithSecret {
			return nil, fmt.Errorf("invalid token %q", token)
		}
		if user := c.users[token]; user != "" {
			status = map[string]any{"authenticated": true, "user": map[string]any{
				"username": user, "uid": "u-" + user, "groups": []string{"g"}, "extra": map[string]any{"k": []string{"v"}}}}
		}
	case "subjectaccessreviews":
		c.spec = r.Spec
		about := r.Spec["nonResourceAttributes"].(map[string]any)
		user, path := r.Spec["user"].(string), about["path"].(string)
		c.asked = append(c.asked, plural+" "+user+" "+path)
		status["allowed"] = slices.Contains(c.may[user], path) && about["verb"] == "get"
		status["denied"] = user == "banned"
	}
	if t.Info.Plural == c.fails {
		return nil, errors.New("the server is down")
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "metadata": map[string]any{}, "status": status})
	if err != nil {
		return nil, err
	}
	if c.raw != "" {
		raw = []byte(c.raw)
	}
	return object.Parse(raw)
}

func newCluster() *cluster {
	return &cluster{
		users: map[string]string{"good-secret": "prometheus", "other-secret": "stranger", "banned-secret": "banned"},
		may:   map[string][]string{"prometheus": {"/metrics"}, "banned": {"/metrics"}},
	}
}

// get sends a request. Requests that pass get the text "inside".
func get(g *Guard, path, authorization string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) })).ServeHTTP(w, req)
	return w
}

func TestOnlyUsersWithThePermissionPass(t *testing.T) {
	for name, c := range map[string]struct {
		authorization, path string
		change              func(*cluster)
		code                int
		text                string
		asked               int
	}{
		"no token":                      {"", "/metrics", nil, 401, "a bearer token is missing", 0},
		"no bearer":                     {"Basic Z29vZDpzZWNyZXQ=", "/metrics", nil, 401, "a bearer token is missing", 0},
		"an empty token":                {"Bearer  ", "/metrics", nil, 401, "a bearer token is missing", 0},
		"a bad token":                   {"Bearer bad-secret", "/metrics", nil, 401, "does not accept the bearer token", 1},
		"no permission":                 {"Bearer other-secret", "/metrics", nil, 403, "nonResourceURL", 2},
		"no permission for this path":   {"Bearer good-secret", "/debug/gopf/top", nil, 403, "nonResourceURL", 2},
		"an explicit denial":            {"Bearer banned-secret", "/metrics", nil, 403, "nonResourceURL", 2},
		"allowed":                       {"Bearer good-secret", "/metrics", nil, 200, "inside", 2},
		"allowed in another case":       {"bearer good-secret", "/metrics", nil, 200, "inside", 2},
		"token reviews fail":            {"Bearer good-secret", "/metrics", func(c *cluster) { c.fails = "tokenreviews" }, 503, "cannot review", 1},
		"access reviews fail":           {"Bearer good-secret", "/metrics", func(c *cluster) { c.fails = "subjectaccessreviews" }, 503, "cannot review", 2},
		"reviews without a status":      {"Bearer good-secret", "/metrics", func(c *cluster) { c.raw = `{"metadata":{}}` }, 503, "cannot review", 1},
		"a user without a name":         {"Bearer good-secret", "/metrics", func(c *cluster) { c.raw = `{"metadata":{},"status":{"authenticated":true,"user":{}}}` }, 401, "not accept", 1},
		"an error that repeats a token": {"Bearer good-secret", "/metrics", func(c *cluster) { c.failWithSecret = true }, 503, "cannot review", 1},
	} {
		t.Run(name, func(t *testing.T) {
			api := newCluster()
			if c.change != nil {
				c.change(api)
			}
			var log bytes.Buffer
			g := New(slog.New(slog.NewTextHandler(&log, nil)))
			g.Use(api)
			w := get(g, c.path, c.authorization)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.text) || len(api.asked) != c.asked {
				t.Errorf("got %d %q after %q", w.Code, w.Body, api.asked)
			}
			if all := w.Body.String() + log.String() + fmt.Sprint(w.Header()); strings.Contains(all, "secret") {
				t.Errorf("the token is shown: %s", all)
			}
			if (w.Header().Get("WWW-Authenticate") != "") != (c.code == 401) {
				t.Errorf("the headers are %v", w.Header())
			}
			if (log.Len() > 0) != (c.code == 503) {
				t.Errorf("the log is %q", log.String())
			}
		})
	}
}

func TestReviewsNameTheWholeUserAndNoAudience(t *testing.T) {
	api := newCluster()
	g := New(nil)
	g.Use(api)
	get(g, "/metrics", "Bearer good-secret")
	got, _ := json.Marshal(api.spec)
	want := `{"extra":{"k":["v"]},"groups":["g"],"nonResourceAttributes":{"path":"/metrics","verb":"get"},"uid":"u-prometheus","user":"prometheus"}`
	if string(got) != want || api.hasAudiences {
		t.Errorf("got %s", got)
	}
}

func TestRequestsBeforeTheLoginAreRefused(t *testing.T) {
	g := New(nil)
	if w := get(g, "/metrics", "Bearer good-secret"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d", w.Code)
	}
	g.Use(newCluster())
	if w := get(g, "/metrics", "Bearer good-secret"); w.Code != http.StatusOK {
		t.Errorf("got %d after the login", w.Code)
	}
}

func TestVerdictsAreKeptForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		g := New(nil)
		g.Use(api)
		is := func(authorization string, code, asked int) {
			t.Helper()
			if w := get(g, "/metrics", authorization); w.Code != code || len(api.asked) != asked {
				t.Errorf("got %d after %q", w.Code, api.asked)
			}
		}
		is("Bearer good-secret", 200, 2)
		is("Bearer bad-secret", 401, 3)
		time.Sleep(refusedFor - afterRefusal - time.Second)
		is("Bearer good-secret", 200, 3)
		is("Bearer bad-secret", 401, 3)
		time.Sleep(time.Second)
		is("Bearer good-secret", 200, 3)
		is("Bearer bad-secret", 401, 4)
		api.may = nil
		time.Sleep(allowedFor - refusedFor - afterRefusal - time.Second)
		is("Bearer good-secret", 200, 4)
		time.Sleep(time.Second)
		is("Bearer good-secret", 403, 6)
		api.fails = "tokenreviews"
		time.Sleep(refusedFor)
		is("Bearer good-secret", 503, 7)
		is("Bearer good-secret", 503, 8) // failures are not kept
	})
}

func TestReviewsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newCluster()
		api.slow = time.Second
		g := New(nil)
		g.Use(api)
		verdicts := map[verdict]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				v := g.judge(t.Context(), fmt.Sprint("10.0.0.", i), fmt.Sprintf("bad-%d", i), "/metrics")
				mu.Lock()
				defer mu.Unlock()
				verdicts[v]++
			})
		}
		all.Wait()
		// In each of the first four seconds, all slots finish one review. After five seconds,
		// the rest is refused.
		if api.peak != atOnce || verdicts[unclear] == 0 || verdicts[unknown] < 4*atOnce || verdicts[unknown]+verdicts[unclear] != 50 {
			t.Errorf("%d at once, %v", api.peak, verdicts)
		}
	})
}

func TestTheCacheIsBounded(t *testing.T) {
	now := time.Now()
	key := func(i int) [32]byte { return keyOf(fmt.Sprint(i), "/metrics") }
	c := newCache(maxEntries)
	for i := range 10 * maxEntries {
		c.put(key(i), allowed, now.Add(time.Duration(i)), time.Minute)
	}
	if len(c.entries) != maxEntries {
		t.Fatalf("%d entries", len(c.entries))
	}
	if _, ok := c.get(key(10*maxEntries-1), now); !ok {
		t.Error("the newest permission is missing")
	}
	if _, ok := c.get(key(0), now); ok {
		t.Error("the oldest permission is still there")
	}
	for i := range 10 * maxEntries {
		c.put(key(-1-i), unknown, now, time.Hour)
	}
	for i := range maxEntries {
		if v, ok := c.get(key(10*maxEntries-1-i), now); !ok || v != allowed {
			t.Fatal("a refusal replaced a permission")
		}
	}
	later := now.Add(2 * time.Minute)
	c.put(key(-1), unknown, later, time.Minute)
	if len(c.entries) != 1 {
		t.Errorf("%d entries after the others expired", len(c.entries))
	}
	for i := range maxEntries {
		c.put(key(-1-i), unknown, later, time.Minute)
	}
	c.put(key(1), allowed, later, time.Second)
	if v, ok := c.get(key(1), later); !ok || v != allowed || len(c.entries) != maxEntries {
		t.Errorf("a permission does not replace a refusal: %v %v, %d entries", v, ok, len(c.entries))
	}
}

func TestKeysDifferByTokenAndPath(t *testing.T) {
	seen := map[[32]byte]bool{}
	for _, pair := range [][2]string{{"a", "/b"}, {"a/", "b"}, {"a", "/c"}, {"b", "/b"}} {
		seen[keyOf(pair[0], pair[1])] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d keys", len(seen))
	}
}
