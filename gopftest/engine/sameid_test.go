package engine_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/logs"
)

func TestHandlersWithOneIDThroughDifferentSelectorsAreCalledOncePerCause(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		labelled := gopf.For[*Example](op, "kopfexamples").WithLabel("first", gopf.Present)
		all := gopf.For[*Example](op, resource)
		on := gopf.Create | gopf.Update | gopf.Delete
		labelled.On(on, "h", diary.handler("first"))
		all.On(on, "h", diary.handler("second"))
		watch := func(name string) func(context.Context, *gopf.WatchEvent[*Example]) error {
			return func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
				if e.Type == "ADDED" {
					diary.add("%s event %s", name, e.Object.Name)
				}
				return nil
			}
		}
		labelled.OnEvent("e", watch("first"))
		all.OnEvent("e", watch("second"))
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()

		both := example("both", "both")
		both.SetLabels(map[string]string{"first": "yes"})
		c.Create(t, both)
		settle()
		c.Create(t, example("one", "one"))
		settle()
		for _, name := range []string{"both", "one"} {
			c.Patch(t, resource, "default", name, map[string]any{"spec": map[string]any{"field": name + "!"}})
			settle()
			c.Delete(t, resource, "default", name)
			settle()
		}
		want := []string{
			"first event both", "first create both",
			"second event one", "second create one",
			"first update both!", "first delete both!",
			"second update one!", "second delete one!",
		}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := log.count("Two handlers share an id"); n != 2 {
			t.Errorf("the overlap of two pairs is told %d times", n)
		}
	})
}

func TestHandlersThatShareAnIDAreCalledOnceWhenResumingMeetsAnUpdate(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		start := func() (stop func()) {
			op := gopf.New()
			kex := gopf.For[*Example](op, resource)
			kex.OnCreate("h", diary.handler("create"))
			kex.OnResume("h", diary.handler("resume"))
			kex.OnUpdate("h", diary.handler("update"))
			return gopftest.Start(t, op, c)
		}
		c.Create(t, example("x", "a"))
		stop := start()
		settle()
		stop()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		stop = start()
		settle()
		stop()
		if got, want := diary.all(), []string{"create create a", "resume update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestHandlersWithOneIDLeaveAStrictOperatorReady(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	op := gopf.New()
	op.Settings.Health.Address, op.Settings.Health.Strict = address, true
	var diary calls
	gopf.For[*Example](op, "kopfexamples").OnCreate("h", diary.handler("first"))
	gopf.For[*Example](op, resource).OnCreate("h", diary.handler("second"))
	gopf.For[*Example](op, "kopfexamples").Timer("t", time.Hour, func(context.Context, *gopf.Tick[*Example]) error { return nil })
	gopf.For[*Example](op, resource).Timer("t", time.Hour, func(context.Context, *gopf.Tick[*Example]) error { return nil })
	ready := make(chan struct{})
	gopftest.Start(t, op, c, gopf.WhenReady(func() { close(ready) }), gopf.Log(slog.New(logs.New(t.Output(), logs.Options{}))))
	<-ready
	for range 100 {
		resp, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if strings.Contains(string(body), "id") {
				t.Errorf("a shared id is told as a problem:\n%s", body)
			}
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the operator does not become ready")
}
