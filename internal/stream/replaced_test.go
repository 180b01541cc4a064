package stream

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
)

func TestReplacedCredentialsAreNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{started: time.Now(), script: []answer{
			open(event("ADDED", "a", "1", "5")), // replaced within the streamed list
			open(event("ADDED", "a", "1", "5"), initialEnd("9"), event("ADDED", "b", "2", "10")),
			open(event("ADDED", "c", "3", "11")),
			open(event("ADDED", "d", "4", "12")),
		}}
		log := &logLines{}
		o := kube.DefaultOptions()
		o.Log = slog.New(log)
		server := &rest.Config{Host: "http://server", Transport: s}
		client, err := kube.NewClient(server, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*time.Second, func() {
				if err := client.Use(server); err != nil {
					t.Error(err)
				}
			})
		}
		cfg := DefaultConfig(pods, "ns")
		cfg.Log = slog.New(log)
		var events []string
		_ = New(client, cfg).Run(ctx, func(e Event) { events = append(events, text(e)) })
		if diff := cmp.Diff([]string{"0s watchlist", "1s watchlist", "2s watch 10", "3s watch 11"}, s.requests); diff != "" {
			t.Errorf("requests: -want +got\n%s", diff)
		}
		want := []string{"LISTED a/1@5", "LISTED a/1@5", "SYNCED", "ADDED b/2@10", "ADDED c/3@11", "ADDED d/4@12"}
		if diff := cmp.Diff(want, events); diff != "" {
			t.Errorf("events: -want +got\n%s", diff)
		}
		if len(log.lines) != 0 {
			t.Errorf("log: got %q", log.lines)
		}
	})
}
