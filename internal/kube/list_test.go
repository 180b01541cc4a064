package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/object"
)

func page(rv, more string, names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"managedFields":[{}]}}`, n))
	}
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q,"remainingItemCount":3},"items":[%s]}`,
		rv, more, strings.Join(items, ","))
}

func TestListsComeInPages(t *testing.T) {
	f := answers(ok(page("9", "x y", "a", "b")), ok(page("9", "", "c")))
	client, _ := f.client(t)
	var got []string
	rv, err := client.List(t.Context(), pods, "ns", ListOptions{Selector: "app in (x,y)"}, func(b *object.Body) error {
		got = append(got, string(b.Raw()))
		return nil
	})
	if rv != "9" || err != nil {
		t.Errorf("got %q, %v", rv, err)
	}
	want := []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects: -want +got\n%s", diff)
	}
	for i, query := range []string{
		"?labelSelector=app+in+%28x%2Cy%29&limit=500",
		"?continue=x+y&labelSelector=app+in+%28x%2Cy%29&limit=500",
	} {
		if _, path, _ := strings.Cut(f.requests[i], "GET "); path != "/base/api/v1/namespaces/ns/pods"+query {
			t.Errorf("request #%d: got %s", i, path)
		}
	}
}

func TestListsOfOtherShapes(t *testing.T) {
	cases := map[string]struct {
		options ListOptions
		body    string
		want    []string
		query   string
		err     string
	}{
		"no items":          {body: `{"items":null,"metadata":{"resourceVersion":"9"}}`, query: "?limit=500"},
		"items first":       {body: `{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"9"}}`, want: []string{"a"}, query: "?limit=500"},
		"all at once":       {options: ListOptions{Limit: -1}, body: page("9", "", "a"), want: []string{"a"}},
		"the first two":     {options: ListOptions{Max: 2}, body: page("9", "more", "a", "b"), want: []string{"a", "b"}, query: "?limit=2"},
		"without a version": {body: `{"items":[]}`, query: "?limit=500", err: "list pods.v1: malformed response: the list has no resourceVersion"},
		"an invalid item":   {body: `{"items":[{"metadata":{"name":"a"}},1]}`, want: []string{"a"}, query: "?limit=500", err: "list pods.v1: malformed response: read the object: not a JSON object"},
		"broken JSON":       {body: `{"items":[{"metadata":{"name":"a"}},]}`, want: []string{"a"}, query: "?limit=500", err: "list pods.v1: malformed response: invalid JSON: unexpected ']'"},
		"truncated":         {body: `{"items":[{"metadata":{"name":"a"}},{"me`, want: []string{"a"}, query: "?limit=500", err: "list pods.v1: unexpected EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := answers(ok(c.body))
			client, _ := f.client(t)
			var got []string
			_, err := client.List(t.Context(), pods, "", c.options, func(b *object.Body) error {
				got = append(got, b.Name)
				return nil
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("objects: -want +got\n%s", diff)
			}
			if fmt.Sprint(err) != c.err && (c.err == "" && err != nil || !strings.HasPrefix(fmt.Sprint(err), c.err)) {
				t.Errorf("error: got %v, want %s", err, c.err)
			}
			if len(f.requests) != 1 || !strings.HasSuffix(f.requests[0], "/pods"+c.query) {
				t.Errorf("requests: got %v", f.requests)
			}
		})
	}
}

func TestTheConsumerOfAListMayFail(t *testing.T) {
	f := answers(ok(page("9", "", "a", "b")))
	client, _ := f.client(t)
	own := errors.New("enough")
	_, err := client.List(t.Context(), pods, "", ListOptions{}, func(*object.Body) error { return own })
	if !errors.Is(err, own) || len(f.requests) != 1 {
		t.Errorf("got %v after %v", err, f.requests)
	}
}

func TestObjectsAreDeliveredWhileTheListArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := page("9", "", "a", "b", "c")
		cut := strings.Index(text, `{"metadata":{"name":"b"`)
		client, _ := answers(func(req *http.Request) (*http.Response, error) {
			r, w := io.Pipe()
			go func() {
				io.WriteString(w, text[:cut])
				time.Sleep(10 * time.Second)
				io.WriteString(w, text[cut:])
				w.Close()
			}()
			return respond(req, http.StatusOK, r), nil
		}).client(t)
		started := time.Now()
		var got []string
		_, err := client.List(t.Context(), pods, "", ListOptions{}, func(b *object.Body) error {
			got = append(got, fmt.Sprint(b.Name, " ", time.Since(started)))
			time.Sleep(time.Minute) // longer than RequestTimeout
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a 0s", "b 1m0s", "c 2m0s"}, got); diff != "" {
			t.Errorf("objects: -want +got\n%s", diff)
		}
	})
}

func TestASilentListTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(func(req *http.Request) (*http.Response, error) {
			return respond(req, http.StatusOK, io.MultiReader(strings.NewReader(`{"items":[{"metadata":{"name":"a"}},`), &silent{req})), nil
		}).client(t)
		started := time.Now()
		_, err := client.List(t.Context(), pods, "", ListOptions{}, func(*object.Body) error { return nil })
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || time.Since(started) != 30*time.Second {
			t.Errorf("got %v after %v", err, time.Since(started))
		}
	})
}

// silent is a body that never returns data.
type silent struct{ req *http.Request }

func (s *silent) Read([]byte) (int, error) {
	<-s.req.Context().Done()
	return 0, s.req.Context().Err()
}

func TestUnreadableItemsAreSkippedAndLoggedOnce(t *testing.T) {
	deep := strings.Repeat("[", 9_994) + strings.Repeat("]", 9_994)
	items := `{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},` +
		`{"metadata":{"name":"deep","namespace":"ns","uid":"u1"},"spec":` + deep + `},` +
		`{"metadata":{"name":"long","namespace":"ns","uid":"u2"},"spec":"` + strings.Repeat("x", 17<<20) + `"},` +
		`{"metadata":{"name":"damaged","namespace":"ns","uid":"u3"},"spec":{"a":}},{"metadata":{"name":"b"}}]}`
	var log bytes.Buffer
	client, _ := answers(ok(items), ok(items), ok(items)).client(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	for range 2 {
		var got, skipped []string
		o := ListOptions{Skipped: func(id object.Identity) { skipped = append(skipped, id.String()) }}
		rv, err := client.List(t.Context(), pods, "", o, func(b *object.Body) error {
			got = append(got, b.Name)
			return nil
		})
		if rv != "9" || err != nil || !slices.Equal(got, []string{"a", "b"}) || !slices.Equal(skipped, []string{"ns/deep", "ns/long", "ns/damaged"}) {
			t.Errorf("version %q, error %v: %v without %v", rv, err, got, skipped)
		}
	}
	if all, _, err := client.Page(t.Context(), pods, "", ListOptions{}, ""); err != nil || len(all) != 2 {
		t.Errorf("a page of %d objects, error %v", len(all), err)
	}
	for _, name := range []string{"name=deep", "name=long", "name=damaged"} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", name, n, &log)
		}
	}
}
