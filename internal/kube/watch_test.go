package kube

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWatchEvents(t *testing.T) {
	meta := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","resourceVersion":"5"}}`
	deep := `{"metadata":{"name":"bad","resourceVersion":"4"},"spec":` + strings.Repeat("[", 12_000) + strings.Repeat("]", 12_000) + `}`
	damaged := `{"metadata":{"name":"bad","resourceVersion":"4"},"spec":{"a":nul}}`
	cases := map[string]struct {
		body string
		want []string
	}{
		"all types": {
			`{"type":"ADDED","object":` + meta + `}` + "\n" + `{"type":"MODIFIED","object":` + meta + `}` + "\n\n" +
				`{"type":"DELETED","object":` + meta + `}` + "\n" + `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}` + "\n",
			[]string{"ADDED a@5", "MODIFIED a@5", "DELETED a@5", "BOOKMARK @9", "EOF"},
		},
		"the end of the initial events": {
			`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}`,
			[]string{"BOOKMARK @9 initial end", "EOF"},
		},
		"an error": {
			`{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}`,
			[]string{"ERROR 410 too old", "EOF"},
		},
		"an error of another shape":   {`{"type":"ERROR","object":{}}`, []string{"ERROR 0 ", "EOF"}},
		"an unknown type":             {`{"type":"WOW","object":1}`, []string{"WOW", "EOF"}},
		"the object before the type":  {`{"object":` + meta + `,"more":[],"type":"ADDED"}`, []string{"ADDED a@5", "EOF"}},
		"no object":                   {`{"type":"ADDED"}`, []string{"malformed response: ADDED event without an object"}},
		"no type":                     {`{"object":{}}`, []string{"malformed response: event without a type"}},
		"an invalid object":           {`{"type":"ADDED","object":[]}`, []string{"malformed response: object of ADDED event: read the object: not a JSON object"}},
		"not an event":                {`[]`, []string{"malformed response: invalid JSON: unexpected '['"}},
		"not JSON":                    {`{"type":"ADDED","object":` + meta + `}` + "\nHello!", []string{"ADDED a@5", "malformed response: invalid JSON: unexpected 'H'"}},
		"truncated event":             {`{"type":"ADDED","object":` + meta, []string{"unexpected EOF"}},
		"nothing":                     {``, []string{"EOF"}},
		"a type that is not a string": {`{"type":1,"object":{}}`, []string{"1", "EOF"}},
		"an object nested too deeply": {`{"type":"ADDED","object":` + deep + `}{"type":"MODIFIED","object":` + meta + `}`, []string{"ADDED bad@4 unreadable", "MODIFIED a@5", "EOF"}},
		"a damaged object":            {`{"type":"ADDED","object":` + damaged + `}{"type":"MODIFIED","object":` + meta + `}`, []string{"ADDED bad@4 unreadable", "MODIFIED a@5", "EOF"}},
		"an event whose end is missing": {
			`{"type":"ADDED","object":{"metadata":{"name":"cut","resourceVersion":"4"},"spec":{"a":"x` + "\n" +
				`{"type":"MODIFIED","object":` + meta + `}` + "\n" + `y"}}}`,
			[]string{"malformed response: object of ADDED event: read the object cut: jsontext: invalid character '\\n' in string (expecting non-control character) within \"/spec/a\" after offset 63"},
		},
		"an unreadable bookmark":     {`{"object":` + deep + `,"type":"BOOKMARK"}`, []string{"malformed response: object of BOOKMARK event: read the object bad: it has more than 1000 levels"}},
		"managed fields are dropped": {`{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[1],"resourceVersion":"5"}}}`, []string{"ADDED a@5", "EOF"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client, _ := answers(ok(c.body)).client(t)
			w, err := client.Watch(t.Context(), pods, "", WatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			var got []string
			for {
				e, err := w.Next()
				if err != nil {
					got = append(got, brief(err))
					break
				}
				got = append(got, describe(e))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func brief(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected EOF"
	}
	return err.Error()
}

func describe(e Event) string {
	s := string(e.Type)
	if e.Body != nil {
		s += " " + e.Body.Name + "@" + e.Body.ResourceVersion
	}
	if e.Unreadable {
		s += " unreadable"
	}
	if e.InitialEnd {
		s += " initial end"
	}
	if e.Status != nil {
		s += fmt.Sprintf(" %d %s", e.Status.Code, e.Status.Message)
	}
	return s
}

func TestWatchRequests(t *testing.T) {
	cases := map[string]struct {
		options WatchOptions
		want    string
	}{
		"from a version": {WatchOptions{ResourceVersion: "5", ServerTimeout: 30 * time.Second},
			"allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=30&watch=true"},
		"with initial events": {WatchOptions{SendInitialEvents: true, Selector: "a=b"},
			"allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := answers(ok(""))
			client, _ := f.client(t)
			w, err := client.Watch(t.Context(), examples, "", c.options)
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			if _, query, _ := strings.Cut(f.requests[0], "/apis/kopf.dev/v1/kopfexamples?"); query != c.want {
				t.Errorf("got %s", f.requests[0])
			}
		})
	}
}

func TestWatchesAreNotRetried(t *testing.T) {
	for _, a := range []scripted{refusal(503, ""), refusal(429, ""), breaks(errDial), breaks(errReset)} {
		f := answers(a)
		client, log := f.client(t)
		if _, err := client.Watch(t.Context(), pods, "", WatchOptions{}); err == nil {
			t.Error("got no error")
		}
		if len(f.requests) != 1 || len(log.lines) != 0 {
			t.Errorf("got the requests %q and the log %q", f.requests, log.lines)
		}
	}
}

func TestAWatchMayBeSilentAfterItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(never, func(req *http.Request) (*http.Response, error) {
			return respond(req, http.StatusOK, &silent{req}), nil
		}).client(t)
		started := time.Now()
		_, err := client.Watch(t.Context(), pods, "", WatchOptions{})
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || time.Since(started) != 30*time.Second {
			t.Errorf("without a response: got %v after %v", err, time.Since(started))
		}

		w, err := client.Watch(t.Context(), pods, "", WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		own := errors.New("enough")
		go func() {
			time.Sleep(time.Hour)
			w.CloseWith(own)
		}()
		started = time.Now()
		if _, err := w.Next(); !errors.Is(err, own) || time.Since(started) != time.Hour {
			t.Errorf("got %v after %v", err, time.Since(started))
		}
	})
}
