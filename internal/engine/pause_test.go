package engine

import (
	"log/slog"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/owned"
	"gopf.dev/gopf/internal/serving"
)

func TestPausesEndWhenAllRequestersResume(t *testing.T) {
	op := &operator{
		Config: Config{Log: slog.New(slog.DiscardHandler)}, pauses: map[string]string{},
		stopping: make(chan struct{}), resumed: make(chan struct{}, 1),
		controllers: serving.New(serving.Config{Shared: controller.Config{Barrier: serving.NewBarrier(false, nil)}, Children: owned.New(owned.Config{})}),
	}
	resumed := func() bool {
		select {
		case <-op.resumed:
			return true
		default:
			return false
		}
	}
	op.Resume("z")
	if op.controllers.Paused() || resumed() {
		t.Error("an unknown requester ends a pause")
	}
	op.Pause("a", "because of b")
	op.Pause("c", "because of a")
	op.Pause("c", "because of a")
	if got, want := op.Pauses(), []string{"because of a", "because of b"}; !slices.Equal(got, want) || !op.controllers.Paused() {
		t.Errorf("got the reasons %q, want %q", got, want)
	}
	op.Resume("a")
	if !op.controllers.Paused() || resumed() {
		t.Error("the first of two requesters ends the pause")
	}
	op.Resume("c")
	if op.controllers.Paused() || !resumed() {
		t.Error("the last requester does not end the pause")
	}
	op.Pause("a", "again")
	close(op.stopping)
	op.Resume("a")
	if resumed() {
		t.Error("a stopping operator starts watches again")
	}
}
