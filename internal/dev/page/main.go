// Command page serves the page of an invented operator with 100,000 objects, for the tests
// in a browser and for work on the page. It prints the URL.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"gopf.dev/gopf/internal/page"
)

// objects is the number of invented objects.
const objects = 100_000

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// run serves the page, and prints its URL.
func run(ctx context.Context, out io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "localhost:0")
	if err != nil {
		return err
	}
	p := page.New(http.HandlerFunc(metrics), slog.New(slog.DiscardHandler))
	p.Started(newInvented())
	for at := time.Now().Add(-20 * time.Minute); time.Until(at) < 0; at = at.Add(5 * time.Second) {
		p.Sample(at) // the past, for the diagrams
	}
	go p.Run(ctx)
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	fmt.Fprintln(out, "http://"+listener.Addr().String()+page.Path)
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
