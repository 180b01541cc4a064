package main

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// background starts work in a goroutine. The returned function cancels it and waits for its end.
func background(ctx context.Context, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { work(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// prepareControlPlane builds the control plane, and prints how it ended.
func prepareControlPlane(ctx context.Context, stderr io.Writer, build func(context.Context, io.Writer) (string, error)) {
	switch _, err := build(ctx, stderr); {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "The control plane is not built completely; gopf dev --memory --prepare continues the build.")
	case err != nil:
		fmt.Fprintf(stderr, "gopf: --prepare: %v\n", err)
	default:
		fmt.Fprintln(stderr, "The real control plane is built; gopf dev --real starts it in seconds.")
	}
}
