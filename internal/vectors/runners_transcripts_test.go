package vectors_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/storage"
)

// wireTranscript plays a scenario with a whole operator and compares what it
// asks of the cluster. The requests about one path are compared in their
// order; those about different paths may come in any.
//
// The differences:
//   - We name ourselves in the user agent, and accept JSON only.
//   - Discovery is asked for in aggregated form, by its Accept header. A cluster
//     that does not have it, like this one, answers with the documents that Kopf
//     asks for, and is then asked for the same ones. They are asked for again
//     after the definitions were listed: those that came in between are told by
//     nobody else.
//   - A list is first asked for as a watch that begins with all objects. A
//     cluster that cannot do that, like this one, is asked in pages of 500.
//   - Namespaces are listed once, not twice.
//   - The status is written before the rest (rule 3).
//   - The last write of a handling asks for an answer without the object.
//   - We may ask what we are allowed to do, in reviews that store nothing.
//   - Writes to an object are bound to it: by its uid, or to the version that was
//     handled where the server does not look at the uid, in the status. Another
//     object of the same name is not hit by them.
//
// Versions are those of another run: watches begin with that of their list,
// which the cluster checks.
//
//   - Freezing and resuming look once and follow nothing. Namespaces given by plain
//     names are not looked for.
//   - Where there is no peering object, so that nobody was told of us, nothing is
//     taken back at the end.
//   - Those of webhook configurations: see playAdmission.
func wireTranscript(t *testing.T, v vector) {
	c := decode[struct {
		Scenario string
		Requests []request
	}](t, v.JSON)
	at := sceneOf(c.Scenario, c.Requests)
	play := map[string]func(*testing.T, string, scene, []request) []request{
		"cluster-wide operator": playClusterWide, "namespaced operator": playNamespaced, "CLI: freeze": playFreezing,
		"admission": playAdmission,
	}
	for prefix, scenario := range play {
		if strings.HasPrefix(c.Scenario, prefix) {
			want, got := normal(t, asWeConfigure(t, kopfs(c.Requests, at, prefix == "CLI: freeze"))), normal(t, ours(t, scenario(t, c.Scenario, at, c.Requests)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests by path: -want +got\n%s", diff)
			}
			return
		}
	}
	t.Fatal("nobody knows how to play this scenario")
}

// kopfs are the requests of the transcript that we make, too. Commands look once
// where operators follow.
func kopfs(all []request, at scene, command bool) (kept []request) {
	namespacesListed := false
	asked := map[string]bool{}
	for _, r := range all {
		_, discovery := documents[r.Path]
		switch {
		case r.By != "":
			continue
		case command && (strings.HasSuffix(r.Path, "/namespaces") || strings.HasSuffix(r.Path, "/customresourcedefinitions")):
			continue
		case command && discovery && asked[r.Path]: // of another command
			continue
		case r.Method == http.MethodPatch && strings.Contains(r.Path, "kopfpeerings/") && !slices.Contains(at.peerings, r.Path) && stringMap(stringMap(r.Body)["status"])[at.identity] == nil:
			continue // there is no such object
		case r.Path == "/api/v1/namespaces" && r.Query == nil:
			if namespacesListed {
				continue
			}
			namespacesListed = true
		}
		asked[r.Path] = true
		kept = append(kept, r)
	}
	return kept
}

// ours are our requests without those that Kopf does not make, which are
// checked to be the known ones.
func ours(t *testing.T, all []request) (kept []request) {
	t.Helper()
	asked := map[string]bool{}
	streamed := map[string]bool{}
	for _, r := range all {
		if got := r.Headers["Authorization"]; got != "Bearer tkn" {
			t.Errorf("%s %s is authorized by %q", r.Method, r.Path, got)
		}
		if got := r.Headers["User-Agent"]; !strings.Contains(got, " gopf/") {
			t.Errorf("the user agent is %q", got)
		}
		if _, discovery := documents[r.Path]; discovery {
			if aggregated := strings.Contains(r.Headers["Accept"], "APIGroupDiscoveryList"); aggregated != (r.Path == "/api" || r.Path == "/apis") {
				t.Errorf("%s is asked for as %q", r.Path, r.Headers["Accept"])
			}
			if asked[r.Path] {
				continue
			}
			asked[r.Path] = true
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "reviews") {
			continue
		}
		if r.Method == http.MethodGet && strings.HasPrefix(r.Path, "/openapi/v3") {
			continue // the paths of filters are checked
		}
		if r.Query["watch"] != "" && r.Query["timeoutSeconds"] == "1" {
			continue // a silent watch is probed
		}
		if r.Query["includeObject"] != "" {
			if delete(r.Query, "includeObject"); len(r.Query) == 0 {
				r.Query = nil
			}
		}
		if isConfiguration(r.Path) {
			if delete(r.Query, "fieldSelector"); len(r.Query) == 0 { // the only one that we may see
				r.Query = nil
			}
		}
		if r.Query["sendInitialEvents"] != "" {
			streamed[r.Path] = true
			continue
		}
		if r.Method == http.MethodGet && isCollection(r.Path) && r.Query["watch"] == "" {
			if !streamed[r.Path] || r.Query["limit"] != "500" || len(r.Query) != 1 {
				t.Errorf("%s is listed with %v", r.Path, r.Query)
			}
			r.Query = nil
		}
		if isConfiguration(r.Path) && r.Method == http.MethodGet {
			continue
		}
		unbind(t, r)
		kept = append(kept, r)
	}
	return kept
}

// unbind takes out of a write what binds it to its object.
func unbind(t *testing.T, r request) {
	t.Helper()
	if r.Method != http.MethodPatch || strings.Contains(r.Path, "kopfpeerings") {
		return
	}
	body := stringMap(r.Body)
	bound := "uid"
	if strings.HasSuffix(r.Path, "/status") || isConfiguration(r.Path) {
		bound = "resourceVersion"
	}
	metadata := stringMap(body["metadata"])
	if value, _ := metadata[bound].(string); value == "" {
		t.Errorf("%s %s is not bound to its object: %v", r.Method, r.Path, r.Body)
	}
	if delete(metadata, bound); len(metadata) == 0 {
		delete(body, "metadata")
	}
}

// normal sorts requests by path and hides what differs from run to run.
func normal(t *testing.T, all []request) map[string][]request {
	t.Helper()
	byPath := map[string][]request{}
	for _, r := range all {
		r.Headers = nil
		if r.Query["resourceVersion"] != "" {
			r.Query["resourceVersion"] = "that of the list"
		}
		if body, _ := r.Body.(map[string]any); body != nil {
			r.Body = normalBody(t, body)
		}
		byPath[r.Path] = append(byPath[r.Path], r)
	}
	return byPath
}

func normalBody(t *testing.T, body map[string]any) map[string]any {
	t.Helper()
	for _, key := range []string{"firstTimestamp", "lastTimestamp", "eventTime"} {
		if text, ok := body[key].(string); ok {
			if _, err := storage.ParseTime(text); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			body[key] = "a moment"
		}
	}
	for _, record := range stringMap(body["status"]) {
		if seen, ok := stringMap(record)["lastseen"].(string); ok {
			if _, err := storage.ParseTime(seen); err != nil {
				t.Errorf("lastseen: %v", err)
			}
			stringMap(record)["lastseen"] = "a moment"
		}
	}
	const base = "kopf.zalando.org/last-handled-configuration"
	if text, ok := stringMap(stringMap(body["metadata"])["annotations"])[base].(string); ok {
		if !strings.HasSuffix(text, "\n") {
			t.Errorf("the base does not end with a line break: %q", text)
		}
		stringMap(stringMap(body["metadata"])["annotations"])[base] = decode[any](t, json.RawMessage(text))
	}
	delete(stringMap(stringMap(body["metadata"])["annotations"]), "kopf.zalando.org/gopf.bound") // rule 16: copies
	return body
}

// playClusterWide has an object created while the operator runs, whose handler
// posts the events and returns the result of the transcript.
func playClusterWide(t *testing.T, _ string, at scene, want []request) []request {
	var path, collection string
	var object map[string]any
	var post []map[string]any
	results := map[string]any{}
	for _, r := range want { // what others did, and the uid it got
		body := stringMap(r.Body)
		switch {
		case r.By != "":
			object, collection = body, r.Path
			path = r.Path + "/" + stringMap(object["metadata"])["name"].(string)
			stringMap(object["metadata"])["namespace"] = strings.Split(r.Path, "/")[5]
		case body["involvedObject"] != nil:
			stringMap(object["metadata"])["uid"] = stringMap(body["involvedObject"])["uid"]
			post = append(post, body)
		case object != nil && r.Path == path+"/status":
			results = stringMap(body["status"])
		}
	}
	object["apiVersion"], object["kind"] = "kopf.dev/v1", "KopfExample"
	op := gopf.New()
	op.Settings.Watching.ServerTimeout = at.serverTimeout
	for id, result := range results {
		op.Resource("kopf.dev/v1/kopfexamples").OnCreate(id, func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
			for _, e := range post {
				c.Event(client.EventType(e["type"].(string)), e["reason"].(string), "%s", uncut(e["message"].(string)))
			}
			post = nil
			c.SetResult(result)
			return nil
		})
	}
	watched := "/apis/kopf.dev/v1/" + collection[strings.LastIndex(collection, "/")+1:]
	all := playOperator(t, op, at, func(c *wireCluster) { c.create(path, object, watched) })
	status, rest := -1, -1
	for i, r := range all {
		switch {
		case r.Method == http.MethodPatch && r.Path == path+"/status":
			status = i
		case r.Method == http.MethodPatch && r.Path == path:
			rest = i
		}
	}
	if status < 0 || rest < status {
		t.Errorf("the status is request %d, and the rest is %d: it is not written first", status, rest)
	}
	return all
}

// uncut is a message that is cut to the one of the transcript.
func uncut(message string) string {
	if head, tail, cut := strings.Cut(message, "..."); cut && len([]rune(message)) == 1024 {
		return head + strings.Repeat("~", 1000) + tail
	}
	return message
}

// playNamespaced has an operator look for its namespaces.
func playNamespaced(t *testing.T, _ string, at scene, _ []request) []request {
	op := gopf.New()
	op.Settings.Watching.ServerTimeout = at.serverTimeout
	op.Resource("kopf.dev/v1/kopfexamples").OnCreate("create_fn", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
	return playOperator(t, op, at, func(*wireCluster) {})
}

// playFreezing freezes and resumes as the commands do.
func playFreezing(t *testing.T, scenario string, at scene, _ []request) (all []request) {
	cluster := at.cluster(t)
	for _, f := range commands(t, scenario) {
		op := gopf.New()
		op.Settings.Peering.Name = f.peering
		opts := []gopf.RunOption{
			gopf.Cluster(&rest.Config{Host: "http://cluster", BearerToken: "tkn", Transport: cluster}), gopf.Log(slog.New(slog.DiscardHandler)),
		}
		if f.namespace != "" {
			opts = append(opts, gopf.Namespaces(f.namespace))
		}
		var err error
		if f.resume {
			err = op.UnpausePeers(t.Context(), at.identity, opts...)
		} else {
			err = op.PausePeers(t.Context(), gopf.PeerPause{Identity: at.identity, Priority: f.priority, Lifetime: at.lifetime}, opts...)
		}
		if missing := !slices.Contains(at.peerings, f.path()); missing != (err != nil) {
			t.Errorf("%+v: the peering is missing: %v, got %v", f, missing, err)
		}
	}
	return cluster.requests
}

// playOperator runs an operator for some seconds of virtual time, has something
// happen meanwhile, and returns all that was asked of the cluster.
func playOperator(t *testing.T, op *gopf.Operator, at scene, meanwhile func(*wireCluster)) (all []request) {
	synctest.Test(t, func(t *testing.T) {
		cluster := at.cluster(t)
		op.Settings.Peering.Identity = at.identity
		config := &rest.Config{Host: "http://cluster", BearerToken: "tkn", Transport: cluster}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- op.Run(ctx, gopf.Cluster(config), gopf.Log(slog.New(slog.DiscardHandler)), gopf.Namespaces(at.patterns...))
		}()
		time.Sleep(5 * time.Second)
		meanwhile(cluster)
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		all = cluster.requests
	})
	return all
}
