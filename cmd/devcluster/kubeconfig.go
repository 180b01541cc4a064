package main

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the name of the cluster, user and context in the kubeconfig.
const contextName = "devcluster"

// writeKubeconfig writes the administrator's kubeconfig into the data folder and to a
// second path, unless that is empty. The file contains the keys, so it can be copied
// anywhere. The same keys and address result in the same file.
func writeKubeconfig(f *folder, k *keys, address, second string) (string, error) {
	config := api.NewConfig()
	cluster, user := api.NewCluster(), api.NewAuthInfo()
	cluster.Server = "https://" + address
	for path, into := range map[string]*[]byte{
		k.caCert:    &cluster.CertificateAuthorityData,
		k.adminCert: &user.ClientCertificateData,
		k.adminKey:  &user.ClientKeyData,
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("make the kubeconfig: %w", err)
		}
		*into = content
	}
	config.Clusters[contextName] = cluster
	config.AuthInfos[contextName] = user
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: contextName, Namespace: "default"}
	config.CurrentContext = contextName
	text, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("make the kubeconfig: %w", err)
	}

	path := f.path("kubeconfig")
	if err := writeFile(path, text); err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	if second == "" {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(second), 0o755); err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	if err := writeFile(second, text); err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	return path, nil
}
