package main

import (
	"context"
	"fmt"

	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// startControllers starts kube-controller-manager with its default controllers.
// It uses the administrator's kubeconfig and opens no port.
func startControllers(ctx context.Context, kubeconfig string, f *folder, k *keys) (*component, error) {
	s, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("configure kube-controller-manager: %w", err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	err = parseFlags("kube-controller-manager", s.Flags(known, disabled, aliases), []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		"--cert-dir=" + f.run,
		"--service-account-private-key-file=" + k.serviceAccounts,
		"--root-ca-file=" + k.caCert,
		"--cluster-signing-cert-file=" + k.caCert,
		"--cluster-signing-key-file=" + k.caKey,
		"--service-cluster-ip-range=" + serviceNetwork,
		// The defaults protect a busy production server. Here, a developer waits.
		"--kube-api-qps=300",
		"--kube-api-burst=600",
		"--pvclaimbinder-sync-period=1s",
		"--controller-shutdown-timeout=1s",
	})
	if err != nil {
		return nil, err
	}
	if err := s.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set the features of kube-controller-manager: %w", err)
	}
	if err := logsapi.ValidateAndApply(s.Logs, nil); err != nil {
		return nil, fmt.Errorf("set up the log of kube-controller-manager: %w", err)
	}
	config, err := s.Config(ctx, known, disabled, aliases)
	if err != nil {
		return nil, fmt.Errorf("configure kube-controller-manager: %w", err)
	}
	return startComponent("kube-controller-manager", func(ctx context.Context) error {
		return app.Run(ctx, config.Complete())
	}), nil
}
