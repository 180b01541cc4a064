// Command gopf-memory serves an in-memory Kubernetes API on 127.0.0.1 over TLS, for "gopf dev
// --memory" and "make demo". Package internal/dev/controlplane of module gopf.dev/gopf builds,
// starts and stops it.
//
// It is built with the tag gopf_lean, without CEL and the parts that need CEL, because these
// take longer to compile than the rest.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"gopf.dev/gopf/gopftest"
)

// report is the line on stdout when the server is ready, or has failed.
type report struct {
	Ready      bool   `json:"ready"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Server     string `json:"server,omitempty"`
	Version    string `json:"version,omitempty"`
	Error      string `json:"error,omitempty"`
}

func main() {
	supervised := flag.Bool("supervised", false, "stop when stdin ends (for programs that start this one)")
	port := flag.Int("port", 0, "port to serve on; 0 means a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if *supervised {
		ctx = untilEOF(ctx, os.Stdin)
	}
	if err := run(ctx, *port, json.NewEncoder(os.Stdout)); err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(report{Error: err.Error()}) // a broken pipe means that the parent has ended
		os.Exit(1)
	}
}

// untilEOF returns a context that ends with ctx or at the end of in. The system closes in
// when the parent process ends.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return ctx
}

// run serves until ctx is done.
func run(ctx context.Context, port int, out *json.Encoder) error {
	folder, err := os.MkdirTemp("", "gopf-memory-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	keys, err := newKeys()
	if err != nil {
		return fmt.Errorf("create the certificate: %w", err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	address := "https://" + listener.Addr().String()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, keys.kubeconfig(address), 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	cluster := gopftest.NewStandalone()
	server := &http.Server{
		Handler:           keys.authenticate(fromProtobuf(cluster.Handler())),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{keys.pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that hang up are no problem
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	version, err := versionOf(cluster)
	if err != nil {
		return err
	}
	if err := out.Encode(report{Ready: true, Kubeconfig: kubeconfig, Server: address, Version: version}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		cluster.Close() // ends all watches
		return errors.Join(server.Close(), ignoreClosed(<-failed))
	case err := <-failed:
		return err
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// versionOf returns the version that the cluster reports to clients.
func versionOf(cluster *gopftest.Cluster) (string, error) {
	response, err := (&http.Client{Transport: cluster.Transport()}).Get("https://cluster/version")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var info struct{ GitVersion string }
	err = json.NewDecoder(response.Body).Decode(&info)
	return info.GitVersion, err
}
