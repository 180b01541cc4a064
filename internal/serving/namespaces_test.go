package serving

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/owned"
)

func pausedNamespace(t *testing.T, name, reason string) *object.Body {
	t.Helper()
	body, err := object.FromMap(map[string]any{"metadata": map[string]any{"name": name, "annotations": map[string]any{"gopf.dev/pause": reason}}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestTheReasonOfAPausedNamespaceIsCutInTheLog(t *testing.T) {
	var log bytes.Buffer
	s := New(Config{Shared: controller.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}})
	s.seeNamespace(pausedNamespace(t, "tenant", strings.Repeat("x", 5000)))
	if got := log.String(); !strings.Contains(got, strings.Repeat("x", 200)) || strings.Contains(got, strings.Repeat("x", 201)) {
		t.Errorf("got %.300q of %d bytes", got, len(got))
	}
}

// A tenant may create, pause and delete namespaces.
func TestThePausesOfRemovedNamespacesAreForgotten(t *testing.T) {
	s := New(Config{Shared: controller.Config{Log: slog.New(slog.DiscardHandler), Barrier: NewBarrier(false, nil)}, Children: owned.New(owned.Config{}), Moved: func() {}})
	for _, name := range []string{"one", "two"} {
		s.seeNamespace(pausedNamespace(t, name, "true"))
		s.serveNamespaces(context.Background(), []string{name}, true)
	}
	s.serveNamespaces(context.Background(), []string{"one"}, false)
	if s.Shared.Spaces.Set("one", nil) {
		t.Error("the pause of a removed namespace is kept")
	}
	if !s.Shared.Spaces.Set("two", nil) {
		t.Error("the pause of another namespace is forgotten")
	}
}
