package kube

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/object"
)

// written logs everything from a level on, as lines without their time.
func written(level slog.Level) (*slog.Logger, *bytes.Buffer) {
	var buf bytes.Buffer
	return slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}})), &buf
}

// slowly makes a response take a second.
func slowly(then scripted) scripted {
	return func(req *http.Request) (*http.Response, error) {
		time.Sleep(time.Second)
		return then(req)
	}
}

func TestTrafficIsLoggedBelowDebugWithoutBodiesAndQueries(t *testing.T) {
	const secret = "s3cret"
	event := `{"type":"ADDED","object":` + onePod + `}`
	use := func(t *testing.T, log *slog.Logger) {
		f := answers(
			slowly(ok(onePod)),
			refusal(http.StatusConflict, "Conflict"),
			breaks(errDial), ok(onePod),
			ok(`{"metadata":{"resourceVersion":"9"},"items":[]}`),
			slowly(ok(event)),
			ok(onePod), ok(event),
		)
		c, _ := f.client(t, func(o *Options) { o.Log = log })
		if _, err := c.Get(t.Context(), podA); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Patch(t.Context(), podA, types.MergePatchType, []byte(`{"data":"`+secret+`"}`), FieldManager(secret))
		quiet := c.Derive(func(o *Options) { o.Log = slog.New(slog.DiscardHandler) })
		if _, err := quiet.Get(t.Context(), podA); err != nil {
			t.Fatal(err)
		}
		if _, err := c.List(t.Context(), pods, "", ListOptions{Selector: secret}, func(*object.Body) error { return nil }); err != nil {
			t.Fatal(err)
		}
		w, err := c.Watch(t.Context(), pods, "ns", WatchOptions{Selector: secret})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.Close()
		w.Close()

		// Clients of other libraries.
		cfg := c.RESTConfig()
		rt, err := rest.TransportFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"token=" + secret, "watch=true&token=" + secret} {
			req, err := http.NewRequest(http.MethodGet, "https://server/base/api/v1/pods?"+query, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	want := `msg="API request." method=GET path=/api/v1/namespaces/ns/pods/a code=200 duration=1s
msg="API request." method=PATCH path=/api/v1/namespaces/ns/pods/a code=409 duration=0s
msg="API request without a response." method=GET path=/api/v1/namespaces/ns/pods/a duration=0s error="dial tcp: connection refused"
msg="API request." method=GET path=/api/v1/namespaces/ns/pods/a code=200 duration=0s
msg="API request." method=GET path=/api/v1/pods code=200 duration=0s
msg="API stream opened." method=GET path=/api/v1/namespaces/ns/pods code=200 duration=1s
msg="API stream closed." method=GET path=/api/v1/namespaces/ns/pods duration=1m0s
msg="API request." method=GET path=/base/api/v1/pods code=200 duration=0s
msg="API stream opened." method=GET path=/base/api/v1/pods code=200 duration=0s
msg="API stream closed." method=GET path=/base/api/v1/pods duration=1m0s
`
	synctest.Test(t, func(t *testing.T) {
		log, lines := written(TrafficLevel)
		use(t, log)
		if diff := cmp.Diff(want, lines.String()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if strings.Contains(lines.String(), secret) {
			t.Errorf("a secret is logged:\n%s", lines)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		log, lines := written(slog.LevelDebug)
		use(t, log)
		if strings.Contains(lines.String(), "API ") {
			t.Errorf("at DEBUG, requests are logged:\n%s", lines)
		}
	})
	if name := fmt.Sprint(TrafficLevel); name != "DEBUG-4" {
		t.Errorf("the level is %s", name)
	}
}
