package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// quota is the maximum size of the database. Load tests soon fill etcd's default of 2 GB.
const quota = 8 << 30

// etcd is the running database.
type etcd struct {
	endpoint string // for clients
	failed   <-chan error
	server   *embed.Etcd
}

// startEtcd starts a single-member etcd and waits until it accepts requests. It has no
// authentication, so it listens on a socket in a folder that only this user can enter, and
// not at all for peers. A volatile database does not wait for the disk.
func startEtcd(ctx context.Context, f *folder, volatile bool) (*etcd, error) {
	socket := url.URL{Scheme: "unix", Path: filepath.Join(f.run, "etcd.sock")}
	// The peer address is not used, but it is stored with the member. Keep it constant.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:1"}

	config := embed.NewConfig()
	config.Dir = f.path("etcd")
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{socket}, []url.URL{socket}
	config.ListenPeerUrls, config.AdvertisePeerUrls = nil, []url.URL{peer}
	config.InitialCluster = config.Name + "=" + peer.String()
	config.LogLevel, config.LogOutputs = "warn", []string{embed.StdErrLogOutput}
	config.QuotaBackendBytes = quota
	config.UnsafeNoFsync = volatile
	// A single member elects itself after the election timeout. Make that short.
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

// stop closes the database, so it is consistent on disk. The listener stays open until the
// process ends, because closing it waits for clients, and an abandoned API server still has
// some.
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
