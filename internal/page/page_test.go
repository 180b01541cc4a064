package page

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/explain"
)

// fake is an operator with one resource. It remembers the last query.
type fake struct {
	asked      controller.Browsing
	found      []controller.Known
	apiVersion string
	kind       string
}

func (f *fake) About() About { return About{Name: "fake", Resources: []string{"things"}} }

func (f *fake) Objects(resource string, b controller.Browsing) ([]controller.Known, int, error) {
	if f.asked = b; resource != "things" {
		return nil, 0, ErrUnknown
	}
	return f.found[:min(len(f.found), b.Limit)], len(f.found), nil
}

func (f *fake) Object(_ context.Context, resource, namespace, name string) (*Object, error) {
	if resource != "things" {
		return nil, ErrUnknown
	}
	return &Object{Report: &explain.Report{
		Object:  explain.Object{APIVersion: f.apiVersion, Kind: f.kind, Namespace: namespace, Name: name},
		Changes: []explain.Change{{Op: "change", Path: "data.password", Old: "hunter1", New: "hunter2"}},
	}}, nil
}

// metrics serves metrics whose counters grow by 10 with each request.
func metrics() http.Handler {
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n += 10
		fmt.Fprintf(w, "gopf_leading 1\ngopf_queue_depth{resource=\"things\"} 3\ngopf_stream_events_total{resource=\"things\"} %d\n", n)
	})
}

func request(p *Page, path string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, "http://localhost:6080"+path, nil)
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, req)
	return w
}

func running(f *fake) *Page {
	p := New(metrics(), slog.New(slog.DiscardHandler))
	p.Started(f)
	return p
}

func TestOnlyLoopbackAddressesAreAllowed(t *testing.T) {
	for address, ok := range map[string]bool{
		":6080": true, "localhost:0": true, "127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:6080": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:6080": false, "[::]:6080": false, "10.0.0.1:6080": false, "example.com:80": false, "localhost": false, "localhost:http": false,
	} {
		if err := CheckAddress(address, false); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := CheckAddress("0.0.0.0:6080", false); !strings.Contains(err.Error(), "kubectl port-forward") {
		t.Error(err)
	}
}

func TestOtherSitesCannotReadThePage(t *testing.T) {
	p := running(&fake{})
	for _, path := range []string{"/", Path, Path + "page.js", Path + "top", Path + "stream", Path + "objects", Path + "objects/things/ns/a"} {
		for _, header := range [][]string{
			{"Host", "evil.example"}, {"Host", "evil.example:6080"}, {"Host", "10.0.0.1"}, {"Host", "localhost.evil.example"}, {"Host", ""},
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"},
		} {
			if w := request(p, path, header...); w.Code != http.StatusForbidden {
				t.Errorf("%s with %q: %d", path, header, w.Code)
			}
		}
	}
	for _, header := range [][]string{{}, {"Host", "127.0.0.1:99"}, {"Host", "[::1]:99"}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}} {
		w := request(p, Path, header...)
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") || strings.Contains(w.Header().Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%q: %d %s", header, w.Code, w.Header())
		}
	}
}

func TestThePageIsSmallAndCompleteInItself(t *testing.T) {
	p := running(&fake{})
	if w := request(p, "/"); w.Code != http.StatusFound || w.Header().Get("Location") != Path {
		t.Errorf("/: %d %s", w.Code, w.Header())
	}
	size := 0
	for _, path := range []string{"", "page.css", "page.js"} {
		w := request(p, Path+path)
		text := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "") // the name of a namespace
		if size += w.Body.Len(); w.Code != http.StatusOK || strings.Contains(text, "://") || strings.Contains(text, "innerHTML") {
			t.Errorf("%s: %d, or an address of another server", path, w.Code)
		}
	}
	if size > 60<<10 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestObjectsAreListedByPages(t *testing.T) {
	f := &fake{}
	for i := range 120 {
		f.found = append(f.found, controller.Known{Namespace: "ns", Name: fmt.Sprintf("o-%03d", i), Retrying: i == 0, Paused: i == 0})
	}
	var l Listing
	w := request(running(f), Path+"objects?q=o-&state=paused&after=ns/a")
	if err := json.Unmarshal(w.Body.Bytes(), &l); err != nil {
		t.Fatal(err)
	}
	if l.Resource != "things" || l.Total != 120 || len(l.Objects) != 50 || l.Next != "ns/o-049" || fmt.Sprint(l.Objects[0].States) != "[retrying paused]" {
		t.Errorf("%+v", l)
	}
	if want := (controller.Browsing{Search: "o-", State: "paused", After: "ns/a", Limit: 50}); f.asked != want {
		t.Errorf("asked for %+v", f.asked)
	}
	for query, code := range map[string]int{"?limit=501": 400, "?limit=0": 400, "?limit=x": 400, "?state=odd": 400, "?resource=others": 404, "?limit=500": 200} {
		if w := request(running(f), Path+"objects"+query); w.Code != code {
			t.Errorf("%s: %d", query, w.Code)
		}
	}
}

func TestValuesOfSecretsAreNeverShown(t *testing.T) {
	for _, c := range []struct {
		apiVersion, kind string
		hidden           bool
	}{{"v1", "Secret", true}, {"example.com/v1", "Secret", false}, {"v1", "ConfigMap", false}} {
		w := request(running(&fake{apiVersion: c.apiVersion, kind: c.kind}), Path+"objects/things/_/a")
		if strings.Contains(w.Body.String(), "hunter") == c.hidden || !strings.Contains(w.Body.String(), "data.password") || strings.Contains(w.Body.String(), `"_"`) {
			t.Errorf("%+v: %s", c, w.Body)
		}
	}
	for path, code := range map[string]int{"objects/things/a": 400, "objects/things//a": 400, "objects/others/ns/a": 404, "objects/things/ns/a/b": 400, "nothing": 404} {
		if w := request(running(&fake{}), Path+path); w.Code != code {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestTheStreamSendsAllPointsAndThenEachNewOne(t *testing.T) {
	p := New(metrics(), slog.New(slog.DiscardHandler))
	if w := request(p, Path+"stream"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("during startup: %d", w.Code)
	}
	p.Started(&fake{})
	start := time.Now()
	for i := range maxPoints + 20 {
		p.Sample(start.Add(time.Duration(i) * interval))
	}
	server := httptest.NewServer(p)
	defer server.Close()
	response, err := http.Get(server.URL + Path + "stream")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	next := func() (top Top) {
		var line string
		for !strings.HasPrefix(line, "data: ") {
			var letters []byte
			for b := make([]byte, 1); ; letters = append(letters, b[0]) {
				if _, err := response.Body.Read(b); err != nil {
					t.Fatal(err)
				}
				if b[0] == '\n' {
					break
				}
			}
			line = string(letters)
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &top); err != nil {
			t.Fatal(err)
		}
		return top
	}
	first := next()
	if len(first.Points) != maxPoints || first.Points[0].Events != 2 || first.Points[0].Queued != 3 || first.Activity.State != "working" || first.About.Name != "fake" {
		t.Errorf("%d points, %+v", len(first.Points), first.Activity)
	}
	last := start.Add(time.Hour)
	p.Sample(last)
	if second := next(); len(second.Points) != 1 || !second.Points[0].At.Equal(last) {
		t.Errorf("%+v", second.Points)
	}
}

// The permission of a client is checked at the beginning of a stream.
func TestAStreamEndsSoThatThePermissionIsCheckedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(metrics(), slog.New(slog.DiscardHandler))
		p.Started(&fake{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx)
		began := time.Now()
		w := request(p, Path+"stream")
		if passed := time.Since(began); passed != streamTime || !strings.HasPrefix(w.Body.String(), "retry: 500\n\n") {
			t.Errorf("the stream ended after %v: %.40q", passed, w.Body)
		}
	})
}
