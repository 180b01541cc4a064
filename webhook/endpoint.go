package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
)

// endpoint is a listening server whose certificates can change at runtime.
type endpoint struct {
	Local
	store    KeyStore
	source   source // of certificates; nil means those of the user's TLS configuration
	describe func(port int, bundle []byte) ClientConfig

	config atomic.Pointer[tls.Config] // for new connections
	served ring
	client []byte // the CAs of client certificates, in PEM
}

// storePause is the delay between attempts after the store has failed.
const storePause = 5 * time.Second

func (e *endpoint) serve(ctx context.Context, reviews http.Handler, announce func(ClientConfig)) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	keeper := keeper{e.store, e.source, cmp.Or(e.Overlap, defaultOverlap)}
	if err := e.begin(ctx, keeper); err != nil && ctx.Err() == nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.address())
	switch {
	case ctx.Err() != nil: // stopped meanwhile: an error no longer matters
		if err == nil {
			listener.Close()
		}
		return nil
	case err != nil:
		return fmt.Errorf("listen for webhooks: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	server := newServer(below(e.root(), reviews), e.log)
	server.TLSConfig = &tls.Config{MinVersion: cmp.Or(e.MinVersion, tls.VersionTLS12), GetConfigForClient: e.configForClient}
	bounded := limited(maxConnections(e.MaxConnections), e.log).Watch(server, listener)
	ended := make(chan error, 1)
	go func() {
		if e.Insecure {
			ended <- server.Serve(bounded)
		} else {
			ended <- server.ServeTLS(bounded, "", "")
		}
	}()
	e.log.Debug("Listening for webhooks at "+e.url(e.listening(), port), "port", port)

	keeping, stop := context.WithCancel(ctx)
	defer stop()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		e.keep(keeping, keeper, func(bundle []byte) { announce(e.describe(port, bundle)) })
	}()
	select {
	case err = <-ended:
		err = fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
		err = drain(ctx, server, e.log)
		<-ended
	}
	stop()
	<-kept
	return err
}

// begin loads or creates the first certificate. It retries while the store fails.
func (e *endpoint) begin(ctx context.Context, k keeper) error {
	switch {
	case e.Insecure:
		return nil
	case k.source == nil:
		return e.useOwn()
	}
	for {
		r, err := k.turn(ctx, announcement{})
		if _, ok := errors.AsType[storeError](err); ok {
			e.log.Error("Loading the certificates of the webhook server failed; retrying.", "error", err)
			if backoff.Sleep(ctx, e.random.Shorten(storePause, jitter.Slight)) != nil {
				return context.Cause(ctx)
			}
			continue
		}
		if err != nil && r.current.empty() {
			return fmt.Errorf("get the certificate of the webhook server: %w", err)
		}
		return e.use(r) // an error about the next certificate is reported by keep
	}
}

// keep announces the server, and renews its certificates until ctx is done.
func (e *endpoint) keep(ctx context.Context, k keeper, announce func(bundle []byte)) {
	switch {
	case e.Insecure:
		announce(nil)
		return
	case k.source == nil:
		e.keepOwn(ctx, announce)
		return
	}
	var told announcement
	for r := e.served; ; {
		if bundle := r.bundle(); told.at.IsZero() || !bytes.Equal(told.bundle, bundle) {
			e.dump(bundle)
			announce(bundle)
			if ctx.Err() != nil {
				return
			}
			told = announcement{bundle, time.Now()}
		}
		// Serve it only now: clients trust it since the announcement.
		if err := e.use(r); err != nil {
			e.log.Error("The new certificate of the webhook server cannot be used; keeping the former one.", "error", err)
		}
		wait := cmp.Or(e.CheckEvery, defaultCheckEvery)
		if at, ok := r.due(told.of(r), k.overlap); ok {
			wait = max(0, min(wait, time.Until(at)))
		}
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
		fresh, err := k.turn(ctx, told)
		if err != nil && ctx.Err() == nil {
			e.log.Error("Renewing the certificates of the webhook server failed; retrying.", "error", err)
			_ = backoff.Sleep(ctx, e.random.Shorten(storePause, jitter.Slight)) // an overdue renewal must not be retried in a tight loop
		}
		if !fresh.current.empty() {
			r = fresh
		}
	}
}

func (e *endpoint) dump(bundle []byte) {
	if e.CADump == "" {
		return
	}
	if err := os.WriteFile(e.CADump, bundle, 0o644); err != nil {
		e.log.Error("Writing the CA of the webhook server to CADump failed.", "error", err)
	}
}
