package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // for kubeconfigs that use it
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNoConfig is returned if there is neither a kubeconfig nor a service account.
var ErrNoConfig = errors.New("no kubeconfig and not in a cluster: set KUBECONFIG, pass --kubeconfig, or run `gopf dev`")

// ConfigError describes in one line why a kubeconfig cannot be used.
type ConfigError struct {
	Path    string
	Problem ConfigProblem
	Detail  string // the remedy, or the expected value
	Err     error  // may be nil
}

// ConfigProblem is the kind of a [ConfigError].
type ConfigProblem string

// Kinds of [ConfigError].
const (
	ConfigMissing   ConfigProblem = "does not exist"
	ConfigBroken    ConfigProblem = "cannot be read"
	ConfigNoContext ConfigProblem = "has no current context"
	ConfigDangling  ConfigProblem = "has no such context"
	ConfigNoCluster ConfigProblem = "has no such cluster"
	ConfigNoUser    ConfigProblem = "has no such user"
	ConfigUnusable  ConfigProblem = "cannot be used"
)

func (e *ConfigError) Error() string {
	s := fmt.Sprintf("the kubeconfig %s %s", e.Path, e.Problem)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + strings.Join(strings.Fields(e.Err.Error()), " ")
	}
	return s
}

func (e *ConfigError) Unwrap() error { return e.Err }

const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// LoadConfig finds the cluster and the credentials. Sources, in this order:
//   - the kubeconfig at kubeconfigPath;
//   - the kubeconfigs in KUBECONFIG;
//   - the service account of the pod;
//   - ~/.kube/config.
//
// Responses are not compressed in a pod, or if the API server is on the same computer:
// there, compression takes more time than it saves, mostly of the API server.
//
// A non-empty context selects a context other than the current one; the service account
// is then not used. The namespace is that of the context or the pod, and empty if they
// have none.
func LoadConfig(kubeconfigPath, context string) (cfg *rest.Config, namespace string, err error) {
	if kubeconfigPath != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" || context != "" {
		return LoadKubeconfig(kubeconfigPath, context)
	}
	if cfg, namespace, err = LoadServiceAccount(); cfg != nil || err != nil {
		return cfg, namespace, err
	}
	return LoadKubeconfig("", "")
}

// LoadServiceAccount is [LoadConfig] for the service account only. It returns a nil
// configuration outside of a pod.
func LoadServiceAccount() (cfg *rest.Config, namespace string, err error) {
	cfg, err = rest.InClusterConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("use the service account of the pod: %w", err)
	}
	cfg.DisableCompression = true
	ns, _ := os.ReadFile(namespaceFile)
	return cfg, strings.TrimSpace(string(ns)), nil
}

// LoadKubeconfig is [LoadConfig] for kubeconfigs only.
func LoadKubeconfig(kubeconfigPath, context string) (cfg *rest.Config, namespace string, err error) {
	if kubeconfigPath != "" {
		return loadFiles([]string{kubeconfigPath}, context)
	}
	if paths := splitPaths(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); len(paths) > 0 {
		return loadFiles(paths, context)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, "", ErrNoConfig
	}
	path := filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, "", ErrNoConfig
	}
	return loadFiles([]string{path}, context)
}

// splitPaths splits a list of paths. Paths may start with "~/" because the environment
// may be set without a shell.
func splitPaths(list string) (paths []string) {
	for _, path := range filepath.SplitList(list) {
		path = strings.TrimSpace(path)
		if below, found := strings.CutPrefix(path, "~/"); found {
			if home, err := os.UserHomeDir(); err == nil {
				path = filepath.Join(home, below)
			}
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// loadFiles merges kubeconfigs as client-go does: the first definition wins, and
// missing files are skipped as long as one exists.
func loadFiles(paths []string, context string) (*rest.Config, string, error) {
	var found []string
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// Load each file separately first, because the error of the merge does not name
		// the file.
		if _, err := clientcmd.LoadFromFile(path); err != nil {
			return nil, "", &ConfigError{Path: path, Problem: ConfigBroken, Err: err}
		}
		found = append(found, path)
	}
	all := strings.Join(paths, string(filepath.ListSeparator))
	if len(found) == 0 {
		return nil, "", &ConfigError{Path: all, Problem: ConfigMissing, Detail: "check KUBECONFIG or --kubeconfig"}
	}

	rules := &clientcmd.ClientConfigLoadingRules{Precedence: found}
	merged, err := rules.Load()
	if err != nil {
		return nil, "", &ConfigError{Path: all, Problem: ConfigBroken, Err: err}
	}
	switch {
	case context == "" && merged.CurrentContext == "":
		return nil, "", &ConfigError{Path: all, Problem: ConfigNoContext,
			Detail: "choose one with `kubectl config use-context` or --context"}
	case context == "":
		context = merged.CurrentContext
	}
	chosen := merged.Contexts[context]
	switch {
	case chosen == nil:
		return nil, "", &ConfigError{Path: all, Problem: ConfigDangling, Detail: fmt.Sprintf("%q", context)}
	case merged.Clusters[chosen.Cluster] == nil:
		return nil, "", &ConfigError{Path: all, Problem: ConfigNoCluster, Detail: fmt.Sprintf("%q, which is used by the context %q", chosen.Cluster, context)}
	case chosen.AuthInfo != "" && merged.AuthInfos[chosen.AuthInfo] == nil:
		return nil, "", &ConfigError{Path: all, Problem: ConfigNoUser, Detail: fmt.Sprintf("%q, which is used by the context %q", chosen.AuthInfo, context)}
	}
	client := clientcmd.NewNonInteractiveClientConfig(*merged, context, &clientcmd.ConfigOverrides{}, rules)
	cfg, err := client.ClientConfig()
	if err != nil {
		return nil, "", &ConfigError{Path: all, Problem: ConfigUnusable, Detail: fmt.Sprintf("context %q", context), Err: err}
	}
	cfg.DisableCompression = cfg.DisableCompression || isLocal(cfg.Host)
	return cfg, chosen.Namespace, nil
}

// isLocal reports whether the address of an API server is one of the same computer.
func isLocal(server string) bool {
	address, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := address.Hostname()
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
