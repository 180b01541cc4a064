package engine_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// tokenServer answers the reviews of requests to the operator's endpoints, which the
// in-memory cluster does not serve. The token "reader" is the user with all permissions below
// /metrics, and "stranger" one without any.
type tokenServer struct {
	http.RoundTripper
	mu    sync.Mutex
	asked []string
}

func (s *tokenServer) RoundTrip(req *http.Request) (*http.Response, error) {
	token := strings.HasSuffix(req.URL.Path, "/tokenreviews")
	if !token && !strings.HasSuffix(req.URL.Path, "/subjectaccessreviews") {
		return s.RoundTripper.RoundTrip(req)
	}
	var review struct {
		Kind   string         `json:"kind"`
		Spec   map[string]any `json:"spec"`
		Status map[string]any `json:"status"`
	}
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		return nil, err
	}
	if name, _ := review.Spec["token"].(string); token {
		known := name == "reader" || name == "stranger"
		review.Status = map[string]any{"authenticated": known, "user": map[string]any{"username": name}}
	} else {
		about, _ := review.Spec["nonResourceAttributes"].(map[string]any)
		review.Status = map[string]any{"allowed": review.Spec["user"] == "reader" && about["verb"] == "get" && about["path"] != "/debug/gopf/objects"}
	}
	s.mu.Lock()
	s.asked = append(s.asked, req.Method+" "+req.URL.Path)
	s.mu.Unlock()
	body, err := json.Marshal(map[string]any{"kind": review.Kind, "metadata": map[string]any{}, "spec": review.Spec, "status": review.Status})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))), Request: req}, nil
}

// readSecurely sends a request with a token. The code is 0 if no server responds.
func readSecurely(t *testing.T, url, token string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "operator.example.com" // as through a Service
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestSecureEndpointsAskTheAPIServer(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	reviews := &tokenServer{}
	cfg := c.RESTConfig()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { reviews.RoundTripper = rt; return reviews })
	op := gopf.New()
	op.Settings.Health.Address = freeAddress(t)
	op.Settings.Metrics.Address = freeAddress(t)
	op.Settings.Metrics.Secure = true
	op.Settings.Insight.Address = freeAddress(t)
	op.Settings.Insight.Secure = true
	// A replica on standby must not write, but it reviews requests.
	op.Settings.Election.Enabled = true
	op.Settings.Election.Name = "secure"
	c.Fault(gopftest.Requests("create", "leases"), gopftest.Fail(http.StatusForbidden))
	gopf.For[*Example](op, resource).OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
	loggedIn := make(chan struct{})
	op.OnLogin("login", func(ctx context.Context, _ *gopf.Activity) (*gopf.Login, error) {
		select {
		case <-loggedIn:
		case <-ctx.Done():
		}
		return &gopf.Login{Config: cfg}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := op.Run(ctx, gopf.Log(quiet())); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()

	metrics, page := "https://"+op.Settings.Metrics.Address+"/metrics", "https://"+op.Settings.Insight.Address+"/debug/gopf/"
	is := func(url, token string, code int, text string) {
		t.Helper()
		var got int
		var body string
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if got, body = readSecurely(t, url, token); got == code && strings.Contains(body, text) {
				return
			}
		}
		t.Errorf("%s as %q: got %d %.300s", url, token, got, body)
	}
	is(metrics, "reader", http.StatusServiceUnavailable, "cannot review")
	if code := status(t, "http://"+op.Settings.Health.Address+"/livez"); code != http.StatusOK {
		t.Errorf("health needs no token, but the code is %d", code)
	}
	close(loggedIn)
	is(metrics, "reader", http.StatusOK, "gopf_build_info")
	is(metrics, "", http.StatusUnauthorized, "missing")
	is(metrics, "nobody", http.StatusUnauthorized, "not accept")
	is(metrics, "stranger", http.StatusForbidden, "nonResourceURL")
	is(page+"top", "reader", http.StatusOK, `"resources"`)
	is(page+"objects", "reader", http.StatusForbidden, "nonResourceURL")
	reviews.mu.Lock()
	defer reviews.mu.Unlock()
	for _, path := range []string{"POST /apis/authentication.k8s.io/v1/tokenreviews", "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"} {
		if !slices.Contains(reviews.asked, path) {
			t.Errorf("%s is missing in %q", path, reviews.asked)
		}
	}
}

func TestASecurePageMayListenAnywhere(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	op.Settings.Insight.Address, op.Settings.Insight.Secure = "0.0.0.0:0", true
	gopf.For[*Example](op, resource).OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
	gopftest.Start(t, op, c)

	op = gopf.New()
	op.Settings.Endpoints.CertFile = "tls.crt"
	err := op.Run(t.Context(), gopf.Cluster(c.RESTConfig()), gopf.Log(quiet()))
	if err == nil || !strings.Contains(err.Error(), "invalid settings: Endpoints") {
		t.Errorf("a certificate without a key: %v", err)
	}
}
