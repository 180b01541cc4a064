package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// quota is the size up to which the database may grow; etcd's default of 2 GB is
// soon full in load tests.
const quota = 8 << 30

// etcd is the running database.
type etcd struct {
	endpoint string // for clients
	failed   <-chan error
	server   *embed.Etcd
}

// startEtcd starts a single-member etcd and waits until it takes requests. It has
// no authentication, so it listens on a socket in a folder that only this user can
// enter, and for peers not at all. What is volatile does not wait for the disk.
func startEtcd(ctx context.Context, f *folder, volatile bool) (*etcd, error) {
	socket := url.URL{Scheme: "unix", Path: filepath.Join(f.run, "etcd.sock")}
	// Nobody dials the peer address, but it is stored with the member: keep it constant.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:1"}

	config := embed.NewConfig()
	config.Dir = f.path("etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{socket}, []url.URL{socket}
	config.ListenPeerUrls, config.AdvertisePeerUrls = nil, []url.URL{peer}
	config.InitialCluster = config.Name + "=" + peer.String()
	config.LogLevel, config.LogOutputs = "warn", []string{embed.StdErrLogOutput}
	config.QuotaBackendBytes = quota
	config.UnsafeNoFsync = volatile
	// A lone member votes for itself after the election timeout: make that short.
	config.TickMs, config.ElectionMs = 20, 100

	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	e := &etcd{endpoint: socket.String(), failed: server.Err(), server: server}
	select {
	case <-server.Server.ReadyNotify():
		return e, nil
	case err := <-server.Err():
		e.stop()
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-ctx.Done():
		e.stop()
		return nil, fmt.Errorf("start etcd: %w", context.Cause(ctx))
	}
}

// stop closes the database, so that it is whole on disk. The listener is left to
// the end of the process, because closing it waits for clients, and an API server
// that was left behind still has some.
func (e *etcd) stop() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		e.server.Server.Stop()
	}()
	select {
	case <-closed:
	case <-time.After(stopComponent):
	}
}
