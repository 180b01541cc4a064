package cli

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

func TestTopShowsTheRatesOfAnOperator(t *testing.T) {
	var scrapes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls := map[bool]string{true: "10", false: "10000"}[scrapes.Add(1) == 1]
		_, _ = w.Write([]byte("gopf_leading 1\ngopf_handler_duration_seconds_count{handler=\"create\",resource=\"pods\"} " + calls + "\n"))
	}))
	defer server.Close()
	got := call(t, "top", "--once", "--interval=1s", "--url="+server.URL)
	if got.code != 0 || !strings.Contains(got.stdout, "operator working") || !regexp.MustCompile(`create +pods +0 +[1-9][0-9.]+ +10000`).MatchString(got.stdout) {
		t.Errorf("got %+v", got)
	}
	if n := scrapes.Load(); n != 2 {
		t.Errorf("%d scrapes, want 2", n)
	}
}

func TestTopNamesTheProblem(t *testing.T) {
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) }))
	defer other.Close()
	for url, want := range map[string]string{
		missing.URL: "404 not found", other.URL: "is this the address of an operator's metrics?",
		"http://127.0.0.1:1/metrics": "start the operator with --metrics, or name its pod with --pod",
	} {
		if got := call(t, "top", "--once", "--url="+url); got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: got %+v, want %q", url, got, want)
		}
	}
}
