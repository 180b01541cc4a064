package main

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// issuer is the issuer and the audience of service-account tokens.
const issuer = "https://kubernetes.default.svc.cluster.local"

// serviceNetwork is the range of cluster IPs; its first address is the API server's.
const serviceNetwork = "10.0.0.0/16"

// startAPIServer starts kube-apiserver on the listener. It does not use kube-apiserver's
// command, which handles the signals of the process and can exist only once in it. With
// history, old versions of objects are kept.
func startAPIServer(etcd string, listener net.Listener, f *folder, k *keys, history bool) (*component, error) {
	s := options.NewServerRunOptions()
	args := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1",
		// Endpoints must not be loopback addresses. Publish none: the search for another
		// address would fail on machines without a network.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceNetwork,
		"--cert-dir=" + f.run,
		"--tls-cert-file=" + k.servingCert,
		"--tls-private-key-file=" + k.servingKey,
		"--client-ca-file=" + k.caCert,
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-signing-key-file=" + k.serviceAccounts,
		"--service-account-key-file=" + k.serviceAccounts,
		"--profiling=false",
	}
	if history {
		args = append(args, "--etcd-compaction-interval=0")
	}
	err := parseFlags("kube-apiserver", s.Flags(), args)
	if err != nil {
		return nil, err
	}
	s.SecureServing.Listener = listener
	s.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port

	// Both components configure logging. In one process, the second would fail.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set the features of kube-apiserver: %w", err)
	}
	if err := logsapi.ValidateAndApply(s.Logs, nil); err != nil {
		return nil, fmt.Errorf("set up the log of kube-apiserver: %w", err)
	}
	return startComponent("kube-apiserver", func(ctx context.Context) error {
		completed, err := s.Complete(ctx)
		if err != nil {
			return err
		}
		if errs := completed.Validate(); len(errs) != 0 {
			return utilerrors.NewAggregate(errs)
		}
		return app.Run(ctx, completed)
	}), nil
}

// parseFlags configures a component by command line flags. Flags are a stable
// interface; the structs behind them are not.
func parseFlags(name string, sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("configure %s: %w", name, err)
	}
	return nil
}
