package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/component-base/version"
)

// The limits of the stages of a shutdown. Their sum is below stopLimit, which is below
// the 5 s that devcluster promises.
const (
	stopComponent = 1200 * time.Millisecond
	stopLimit     = 4200 * time.Millisecond
)

// run starts the control plane, reports that it is ready, waits until ctx is done or a
// component fails, and stops it. It returns the exit code.
func run(ctx context.Context, o settings) int {
	out, err := newReporter(o.supervised)
	if err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return exitFailure
	}
	f, err := openFolder(o.data)
	if err != nil {
		return out.failed(err, "")
	}
	logPath := o.log
	if logPath == "" {
		logPath = f.path("devcluster.log")
	}
	if err := redirectLogs(logPath); err != nil {
		f.remove()
		return out.failed(err, "")
	}
	out.starting(logPath)

	// Components may hang while they stop or start.
	go func() {
		<-ctx.Done()
		time.Sleep(stopLimit)
		f.remove()
		os.Exit(0)
	}()

	err = serve(ctx, o, f, out, logPath)
	if ctx.Err() != nil {
		// Failures after the request to stop are caused by it.
		f.remove()
		return 0
	}
	if o.log == "" {
		logPath = f.keepLog(logPath)
	}
	f.remove()
	return out.failed(err, logPath)
}

// serve runs the components until ctx is done or one of them fails.
func serve(ctx context.Context, o settings, f *folder, out *reporter, logPath string) error {
	listener, err := listen(f, o.port)
	if err != nil {
		return err
	}
	defer listener.Close()
	keys, err := loadKeys(f)
	if err != nil {
		return err
	}
	kubeconfig, err := writeKubeconfig(f, keys, listener.Addr().String(), o.kubeconfig)
	if err != nil {
		return err
	}

	store, err := startEtcd(ctx, f, f.temporary || o.bench)
	if err != nil {
		return err
	}
	defer store.stop()
	api, err := startAPIServer(store.endpoint, listener, f, keys, o.bench)
	if err != nil {
		return err
	}
	defer api.stop()
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	if err := api.await(ctx, "the API server is ready", client.apiServerReady); err != nil {
		return err
	}
	controllers, err := startControllers(ctx, kubeconfig, f, keys)
	if err != nil {
		return err
	}
	defer controllers.stop()
	if err := controllers.await(ctx, "the controllers are ready", client.controllersReady); err != nil {
		return err
	}

	out.ready(report{
		Kubeconfig: kubeconfig,
		Server:     "https://" + listener.Addr().String(),
		Version:    version.Get().GitVersion,
		Log:        logPath,
		Etcd:       store.endpoint,
	}, f)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-api.done:
		return api.ended()
	case <-controllers.done:
		return controllers.ended()
	case err := <-store.failed:
		return fmt.Errorf("etcd failed: %w", errors.Join(err, errEnded))
	}
}
