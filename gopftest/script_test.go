package gopftest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// script sends requests to an API, and records the responses in a form that does not
// depend on the cluster: UIDs, versions and times become names in order of appearance.
// "The same as before" therefore stays visible.
type script struct {
	t         *testing.T
	client    *http.Client
	host      string
	namespace string
	seen      map[string]string
	counts    map[string]int
	lines     []string

	// serve starts a webhook with the handler, and returns its client configuration.
	serve func(http.Handler) (clientConfig string)
	// expire makes older versions unreadable, on clusters where a test can do that.
	expire func()
}

func newScript(t *testing.T, cfg *rest.Config, namespace string) *script {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &script{t: t, client: client, host: strings.TrimSuffix(cfg.Host, "/"), namespace: namespace,
		seen: map[string]string{}, counts: map[string]int{}, expire: func() {}}
}

// reply is a response, with helpers for scripts.
type reply struct {
	code int
	head http.Header
	body map[string]any
	text string
}

func (r reply) get(path ...string) any {
	var v any = r.body
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

func (r reply) version() string { return fmt.Sprint(r.get("metadata", "resourceVersion")) }
func (r reply) uid() string     { return fmt.Sprint(r.get("metadata", "uid")) }

// send makes a request without recording it. {ns} in path and body is the namespace of
// the script. Headers have the form "Name: value".
func (s *script) send(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (s *script) try(method, path, body string, headers ...string) (reply, error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := s.open(ctx, method, path, body, headers...)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	r := reply{code: resp.StatusCode, head: resp.Header, text: string(raw)}
	if json.Unmarshal(raw, &r.body) == nil {
		r.text = ""
	}
	return r, err
}

func (s *script) open(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.host+s.in(path), strings.NewReader(s.in(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	switch {
	case method == http.MethodPatch && strings.HasPrefix(body, "["):
		req.Header.Set("Content-Type", "application/json-patch+json")
	case method == http.MethodPatch:
		req.Header.Set("Content-Type", "application/merge-patch+json")
	case body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, s.in(value))
	}
	return s.client.Do(req)
}

func (s *script) in(text string) string { return strings.ReplaceAll(text, "{ns}", s.namespace) }

// call makes a request and records the response.
func (s *script) call(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r := s.send(method, path, body, headers...)
	s.note(method, path, strings.Join(headers, " "))
	if r.get("kind") == "Table" && method == "GET" && listPath.MatchString(path) {
		r.body["metadata"].(map[string]any)["resourceVersion"] = "current"
	}
	s.note("  ->", r.code, s.stable(r.body), r.text)
	return r
}

// pick makes a request and records only the code and the given fields. Use it for kinds
// of which the real API server returns irrelevant fields.
func (s *script) pick(fields []string, method, path, body string, headers ...string) reply {
	s.t.Helper()
	r := s.send(method, path, body, headers...)
	s.note(method, path, strings.Join(headers, " "))
	picked := map[string]any{}
	for _, f := range fields {
		if v := r.get(strings.Split(f, ".")...); v != nil {
			picked[f] = v
		}
	}
	s.note("  ->", r.code, s.stable(picked))
	return r
}

// watch reads n events of a watch and records them. It calls do after the first skip
// events, while the watch is open.
func (s *script) watch(path string, n, skip int, do func(), headers ...string) []map[string]any {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	resp, err := s.open(ctx, http.MethodGet, path, "", headers...)
	if err != nil {
		s.t.Fatalf("watch %s: %v", path, err)
	}
	defer resp.Body.Close()
	s.note("WATCH", regexp.MustCompile(`resourceVersion=\d+`).ReplaceAllString(path, "resourceVersion=…"), resp.StatusCode)
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body)
		var body map[string]any
		_ = json.Unmarshal(raw, &body)
		s.note("  ->", s.stable(body))
		return nil
	}
	var events []map[string]any
	lines := bufio.NewReader(resp.Body)
	for len(events) < n {
		if len(events) == skip && do != nil {
			do()
			do = nil
		}
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			s.note("  end of stream")
			break
		}
		if err != nil {
			s.t.Fatalf("watch %s: after %d events: %v", path, len(events), err)
		}
		var ev map[string]any
		if err := json.Unmarshal(line, &ev); err != nil {
			s.t.Fatalf("watch %s: %v in %q", path, err, line)
		}
		events = append(events, ev)
		s.note("  ", s.stable(ev))
	}
	return events
}

// eventually repeats a request, unrecorded, until the response is as wanted. The real API
// server breaks connections when a definition changes.
func (s *script) eventually(method, path string, ok func(reply) bool) reply {
	s.t.Helper()
	for range 1800 { // 90 seconds
		if r, err := s.try(method, path, ""); err == nil && ok(r) {
			return r
		}
		pause()
	}
	s.t.Fatalf("%s %s: no wanted response", method, path)
	return reply{}
}

// pause gives the real API server time for its background work.
func pause() { time.Sleep(50 * time.Millisecond) }

func (s *script) note(parts ...any) {
	s.lines = append(s.lines, strings.TrimRight(fmt.Sprintln(parts...), " \n"))
}

// quietly runs do without recording anything.
func (s *script) quietly(do func()) {
	written := s.lines
	do()
	s.lines = written
}

func (s *script) transcript() string {
	return strings.ReplaceAll(strings.Join(s.lines, "\n"), s.namespace, "{ns}") + "\n"
}

// stable renders JSON independently of the cluster.
func (s *script) stable(v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s.rename("", v)); err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(buf.String())
}

var (
	uuids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
	listPath = regexp.MustCompile(`s(\?|$)`)
	ages     = regexp.MustCompile(`^\d+[sm]$`)
	large    = regexp.MustCompile(`\b(version: |current: |record \()\d+( \(\d+\))?`)
)

func (s *script) rename(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) { // names depend on the order
			switch x := v[k]; {
			case k == "managedFields" || k == "storageVersionHash":
				// Not stored in memory, or irrelevant.
			case k == "metadata" && v["items"] != nil, k == "object" && v["type"] == "BOOKMARK":
				out[k] = s.rename("current", x)
			case key == "current" && k == "resourceVersion":
				out[k] = "rv-current" // depends on other activity in the cluster
			case key == "current":
				out[k] = s.rename(key, x)
			default:
				out[k] = s.rename(k, x)
			}
		}
		return out
	case []any:
		out := []any{}
		if key != "current" {
			key = ""
		}
		for _, x := range v {
			out = append(out, s.rename(key, x))
		}
		return out
	case string:
		switch {
		case key == "resourceVersion" && v != "":
			return s.name("rv", v)
		case key == "continue" && v != "":
			return s.name("token", v)
		case times.MatchString(v):
			return "TIME"
		case ages.MatchString(v):
			return "AGE"
		}
		v = uuids.ReplaceAllStringFunc(v, func(id string) string { return s.name("uid", id) })
		v = large.ReplaceAllString(v, "${1}N")
		return v
	default:
		return v
	}
}

func (s *script) name(kind, value string) string {
	if name, ok := s.seen[kind+value]; ok {
		return name
	}
	s.counts[kind]++
	name := fmt.Sprintf("%s-%d", kind, s.counts[kind])
	s.seen[kind+value] = name
	return name
}
