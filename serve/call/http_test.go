package call

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

func hook(t *testing.T, fn http.HandlerFunc, change ...func(*spec.Call)) *HTTP {
	t.Helper()
	server := httptest.NewServer(fn)
	t.Cleanup(server.Close)
	c := spec.Call{HTTP: &spec.HTTP{URL: server.URL}}
	for _, fn := range change {
		fn(&c)
	}
	h, err := NewHTTP(Options{Call: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func TestAHookGetsTheDocumentAndReturnsOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hook(t, func(w http.ResponseWriter, r *http.Request) {
		var in Input
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Handler != "h" || r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, `{"status": {"size": 1.5}}`)
	}, func(c *spec.Call) { c.HTTP.TokenFile = file })
	out, err := h.Call(t.Context(), request(nil))
	if err != nil || out.Status["size"] != 1.5 {
		t.Errorf("got %+v, %v", out, err)
	}
}

func TestBadHooksFailWithinTheirLimits(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	for name, c := range map[string]struct {
		hook http.HandlerFunc
		want string
	}{
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not notice the end of the connection
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		}, "the time limit of the call is over"},
		"sends slowly": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, "the time limit of the call is over"},
		"sends without end": {func(w http.ResponseWriter, _ *http.Request) {
			block := strings.Repeat("x", 1<<20)
			for range 6 {
				_, _ = io.WriteString(w, block)
			}
		}, "the response has more than 4194304 bytes"},
		"HTML": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, `it begins with "<html>"`},
		"201":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, "201 Created"},
		"500": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no space", http.StatusInternalServerError)
		}, "500 Internal Server Error: no space"},
		"half a chunk": {halfAChunk, "read the response"},
		"unknown key":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"x": 1}`) }, `unknown key "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			limit := 30 * time.Second
			if strings.Contains(c.want, "time limit") {
				limit = 200 * time.Millisecond
			}
			h := hook(t, c.hook, func(c *spec.Call) { c.CallTimeout = limit })
			if _, err := h.Call(t.Context(), request(nil)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// halfAChunk breaks the connection within a chunk.
func halfAChunk(w http.ResponseWriter, _ *http.Request) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"status\"")
	_ = buffer.Flush()
}

func TestRetryAfterIsTheDelay(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "Thu, 01 Jan 2026 12:00:09 GMT": 9 * time.Second,
		"Thu, 01 Jan 2026 11:00:00 GMT": 0, "999999999999": maxRetryAfter,
	} {
		if got, ok := RetryAfter(header, now); !ok || got != want {
			t.Errorf("%s: got %v, %v", header, got, ok)
		}
	}
	for _, header := range []string{"", "soon", "-1"} {
		if got, ok := RetryAfter(header, now); ok {
			t.Errorf("%q: got %v", header, got)
		}
	}
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		h := hook(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
		})
		_, err := h.Call(t.Context(), request(nil))
		var decided *Error
		if !errors.As(err, &decided) || decided.Permanent || *decided.After != 7*time.Second {
			t.Errorf("%d: got %v", code, err)
		}
	}
}

func TestTheCertificateOfAHookIsChecked(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for ca, ok := range map[string]bool{"": false, file: true} {
		h, err := NewHTTP(Options{Call: spec.Call{HTTP: &spec.HTTP{URL: server.URL, CAFile: ca}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Call(t.Context(), request(nil)); (err == nil) != ok {
			t.Errorf("with %q: got %v", ca, err)
		}
	}
}
