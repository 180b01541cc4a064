package kube

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// responseOf sends a request through [inflating] to a server that responds by handle.
func responseOf(t *testing.T, handle http.HandlerFunc) *http.Response {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := inflating{&http.Transport{DisableCompression: true}}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if request.Header.Get("Accept-Encoding") != "" {
		t.Error("the request of the caller was changed")
	}
	return response
}

func compressed(w http.ResponseWriter) *gzip.Writer {
	w.Header().Set("Content-Encoding", "gzip")
	return gzip.NewWriter(w)
}

func TestCompressedResponsesAreDecompressed(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a list of objects ", 10_000)
	response := responseOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Error("the client does not accept compressed responses")
		}
		z := compressed(w)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
	})
	got, err := io.ReadAll(response.Body)
	if err != nil || string(got) != text {
		t.Errorf("read %d bytes, want %d: %v", len(got), len(text), err)
	}
	if response.Header.Get("Content-Encoding") != "" || response.ContentLength != -1 || !response.Uncompressed {
		t.Errorf("the response looks compressed: %v, length %d", response.Header, response.ContentLength)
	}
}

// A watch delivers each event at once, not with the next ones.
func TestCompressedStreamsAreReadUpToTheLastFlush(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	response := responseOf(t, func(w http.ResponseWriter, _ *http.Request) {
		z := compressed(w)
		for _, line := range []string{"first\n", "second\n", "third\n"} {
			_, _ = z.Write([]byte(line))
			_ = z.Flush()
			w.(http.Flusher).Flush()
			<-next // the test has read the line
		}
		_ = z.Close()
	})
	lines := bufio.NewReader(response.Body)
	for _, want := range []string{"first\n", "second\n", "third\n"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Errorf("read %q, want %q: %v", got, want, err)
		}
		next <- struct{}{}
	}
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestDamagedCompressedResponsesAreErrors(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]http.HandlerFunc{
		"not compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("plain text"))
		},
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			z := compressed(w)
			_, _ = z.Write([]byte("the beginning"))
			_ = z.Flush() // it is never closed
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := io.ReadAll(responseOf(t, handle).Body); err == nil {
				t.Errorf("read %q without an error", got)
			}
		})
	}
}

func TestPlainResponsesAreNotChanged(t *testing.T) {
	t.Parallel()
	response := responseOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("plain")) })
	if got, err := io.ReadAll(response.Body); err != nil || string(got) != "plain" || response.ContentLength != 5 {
		t.Errorf("read %q with length %d: %v", got, response.ContentLength, err)
	}
}
