package health_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/guard"
	"gopf.dev/gopf/internal/health"
)

// secured returns a configuration with secure metrics and a secure page. The guard passes on
// requests with the header X-Pass.
func secured(t *testing.T) health.Config {
	t.Helper()
	certificate, err := guard.NewCertificate("", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := health.DefaultConfig()
	c.Snapshot = started().get
	c.SecureMetrics, c.SecureInsight, c.TLS = true, true, certificate.TLS()
	c.Guard = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("X-Pass") == "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, req)
		})
	}
	text := func(s string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
	}
	c.MetricsHandler, c.Page = text("the metrics"), text("the page")
	return c
}

// getTLS trusts all certificates.
func getTLS(t *testing.T, url, pass string) (int, string) {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	req.Header.Set("X-Pass", pass)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 1 {
		t.Errorf("%s: HTTP/%d", url, resp.ProtoMajor)
	}
	return resp.StatusCode, string(must(io.ReadAll(resp.Body)))
}

func TestSecureEndpointsAreGuardedAndHealthIsOpen(t *testing.T) {
	c := secured(t)
	c.Health, c.Metrics, c.Insight = "localhost:0", "127.0.0.1:0", "127.0.0.1:0"
	at := run(t, c)
	if at.Metrics != at.Insight || at.Health == at.Metrics {
		t.Fatalf("the addresses are %+v", at)
	}
	for path, text := range map[string]string{"/metrics": "the metrics", "/": "the page", "/debug/gopf/top": "the page"} {
		if code, _ := getTLS(t, "https://"+at.Metrics+path, ""); code != http.StatusUnauthorized {
			t.Errorf("%s without the header: %d", path, code)
		}
		if code, body := getTLS(t, "https://"+at.Metrics+path, "yes"); code != http.StatusOK || body != text {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if got := get(t, "http://"+at.Metrics+"/metrics", "X-Pass", "yes"); got.Code != http.StatusBadRequest {
		t.Errorf("without TLS: %v", got)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if got := get(t, "http://"+at.Health+path); got.Code != http.StatusOK {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestSecureEndpointsDoNotShareAnAddressWithOpenOnes(t *testing.T) {
	c := secured(t)
	c.Health, c.Metrics = "127.0.0.1:0", "127.0.0.1:0"
	_, err := health.Listen(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "only one of both is secure; choose another port") {
		t.Errorf("got %v", err)
	}
	c = secured(t)
	c.Metrics, c.Guard = "127.0.0.1:0", nil
	if _, err := health.Listen(t.Context(), c); err == nil {
		t.Error("metrics are served without a guard")
	}
}
