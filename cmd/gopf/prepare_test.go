package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestTheEndOfThePreparationIsPrinted(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, end := range map[string]struct {
		ctx context.Context
		err error
	}{
		"gopf dev --real starts it in seconds":  {t.Context(), nil},
		"gopf: --prepare: the disk is full":     {t.Context(), errors.New("the disk is full")},
		"gopf dev --memory --prepare continues": {canceled, canceled.Err()},
	} {
		var out strings.Builder
		prepareControlPlane(end.ctx, &out, func(_ context.Context, progress io.Writer) (string, error) {
			_, _ = io.WriteString(progress, "Still building.\n")
			return "", end.err
		})
		if got := out.String(); !strings.HasPrefix(got, "Still building.\n") || !strings.Contains(got, want) {
			t.Errorf("printed %q, want %q", got, want)
		}
	}
}

func TestTheEndOfTheLoopEndsThePreparation(t *testing.T) {
	ended := false
	stop := background(t.Context(), func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	if stop(); !ended {
		t.Error("it did not wait for the end of the preparation")
	}
}
