package engine_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/page"
)

func TestHistoryPrintsTheStepsOfARunningOperator(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	address := freeAddress(t)
	op.Settings.Insight.Address = address
	gopf.For[*Example](op, resource).OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
		ch.Event(gopf.Normal, "Making", "it is made")
		return gopf.RetryAfter(time.Hour, errors.New("not yet"))
	})
	gopftest.Start(t, op, c)
	c.Create(t, example("x", "a"))
	shownOn(t, address, "kopfexamples.kopf.dev/default/x", func(o page.Object) bool { return len(o.Timeline) >= 4 })

	var out bytes.Buffer
	if err := commands(t, c, op).History(t.Context(), objectNamed("x"), insight.Endpoint{URL: "http://" + address + "/"}, func(h *insight.History) error { return h.Write(&out) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`call +[0-9.]+[µm]?s +make retried +not yet`, `write +[0-9.]+[µm]?s +succeeded`, `event +Making: it is made`, `turn +[0-9.]+[µm]?s +(ADDED|LISTED)`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the history has no line %q:\n%s", want, &out)
		}
	}
	missing := commands(t, c, op).History(t.Context(), objectNamed("y"), insight.Endpoint{URL: "http://" + address}, nil)
	if missing == nil || !strings.Contains(missing.Error(), "404 not found") {
		t.Errorf("got %v, want that the object does not exist", missing)
	}
}

func TestHistoryNamesTheProblemOfTheAddress(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	gopf.For[*Example](op, resource).OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"kind": "Status"}`)) }))
	defer other.Close()
	for url, want := range map[string]string{"http://127.0.0.1:1": "start the operator with --insight", other.URL: "is this the insight address of an operator?"} {
		if err := commands(t, c, op).History(t.Context(), objectNamed("x"), insight.Endpoint{URL: url}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}
