package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/page"
)

// fetch reads a path of the page. It returns an empty text if no server responds.
func fetch(t *testing.T, address, path string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+page.Path+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// shownOn waits until the page of an object shows what is wanted.
func shownOn(t *testing.T, address, path string, good func(page.Object) bool) (o page.Object) {
	t.Helper()
	var text string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var code int
		if code, text = fetch(t, address, "objects/"+path); code != http.StatusOK {
			continue
		}
		o = page.Object{}
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if good(o) {
			return o
		}
	}
	t.Fatalf("the page of %s does not show it: %s", path, text)
	return o
}

func TestThePageOfARunningOperatorShowsItsObjects(t *testing.T) {
	c := gopftest.NewCluster(t, resource, configMaps, "v1/secrets", "v1/namespaces")
	op := owning()
	address := freeAddress(t)
	op.Settings.Insight.Address = address
	x := gopf.For[*Example](op, resource)
	x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
		if ch.Object.Name == "later" {
			return gopf.RetryAfter(time.Hour, errors.New("not yet"))
		}
		ch.Event(gopf.Normal, "Made", "it is made")
		return nil
	})
	x.Daemon("tail", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
		return gopf.RetryAfter(time.Hour, errors.New("no tail"))
	})
	x.Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
		reconciled(r)
		return nil
	}, gopf.Owns[*corev1.ConfigMap]())
	gopftest.Start(t, op, c)
	c.Create(t, example("later", "a"))
	c.Create(t, withItems("owner", "a", "one", "two"))

	const later, owner = "kopfexamples.kopf.dev/default/later", "kopfexamples.kopf.dev/default/owner"
	has := func(o page.Object, step, handler, outcome, text string) bool {
		return slices.ContainsFunc(o.Timeline, func(s page.Step) bool {
			return s.Step == step && s.Handler == handler && s.Outcome == outcome && strings.Contains(s.Text, text)
		})
	}
	o := shownOn(t, address, later, func(o page.Object) bool {
		return has(o, "call", "make", "retried", "not yet") && has(o, "write", "", "succeeded", "") && has(o, "turn", "", "", "ED, version ") && o.Report.Next == "wait"
	})
	if h := handlerOf(t, o.Report, "make"); h.Phase != "delayed" || h.Message != "not yet" {
		t.Errorf("%+v", h)
	}
	if want := explained(t, c, op, "later"); want.Summary != o.Report.Summary || want.Next != o.Report.Next {
		t.Errorf("the page says %q, explain says %q", o.Report.Summary, want.Summary)
	}
	o = shownOn(t, address, owner, func(o page.Object) bool {
		return len(o.Children) == 2 && has(o, "call", "children", "succeeded", "") && has(o, "event", "", "", "Made") && has(o, "call", "tail", "retried", "no tail")
	})
	if one := o.Children[0]; one.Kind != "ConfigMap" || one.Name != "one" || one.State != "ready" || one.Resource != "" {
		t.Errorf("%+v", o.Children)
	}
	for path, want := range map[string]string{
		"objects?q=lat": `"total":1`, "objects?q=lat&state=retrying": `"states":["retrying"]`, "objects?state=paused": `"total":0`,
		"top": `"name":"kopfexamples.kopf.dev"`, "objects/kopfexamples.kopf.dev/default/none": "not found", "objects/pods/default/a": "does not serve", "": "<!doctype html>",
	} {
		var text string
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(text, want); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s: %s", path, text)
				break
			}
			_, text = fetch(t, address, path)
		}
	}
}

func TestThePageNeedsALoopbackAddress(t *testing.T) {
	c := gopftest.NewCluster(t, resource)
	op := gopf.New()
	op.Settings.Insight.Address = "0.0.0.0:6080"
	gopf.For[*Example](op, resource).OnCreate("make", func(context.Context, *gopf.Change[*Example]) error { return nil })
	err := op.Run(t.Context(), gopf.Cluster(c.RESTConfig()), gopf.Log(quiet()))
	if err == nil || !strings.Contains(err.Error(), "Insight.Address") || !strings.Contains(err.Error(), "not a loopback address") {
		t.Errorf("Run returned %v", err)
	}
}
