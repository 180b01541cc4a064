package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// quota is the maximum size of the database. Load tests soon exceed etcd's default of
// 2 GB.
const quota = 8 << 30

// etcd is the running database.
type etcd struct {
	endpoint string // for clients
	failed   <-chan error
	server   *embed.Etcd
}

// startEtcd starts an etcd with a single member and waits until it accepts requests. It
// has no authentication, so it listens on a socket in a folder that only this user can
// enter, and not for peers. Volatile data is not synced to the disk.
func startEtcd(ctx context.Context, f *folder, volatile bool) (*etcd, error) {
	socket := url.URL{Scheme: "unix", Path: filepath.Join(f.run, "etcd.sock")}
	// The peer address is not used, but it is stored with the member: keep it constant.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:1"}

	config := embed.NewConfig()
	config.Dir = f.path("etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{socket}, []url.URL{socket}
	config.ListenPeerUrls, config.AdvertisePeerUrls = nil, []url.URL{peer}
	config.InitialCluster = config.Name + "=" + peer.String()
	config.LogLevel, config.LogOutputs = "warn", []string{embed.StdErrLogOutput}
	config.QuotaBackendBytes = quota
	config.UnsafeNoFsync = volatile
	// A single member elects itself after the election timeout: make that short.
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

// stop closes the database and completes it on disk. The listener stays open until the
// process ends: closing it would wait for its clients, such as an abandoned API server.
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
