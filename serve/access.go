package serve

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/serve/spec"
)

// tokenSeconds is the lifetime of the tokens that programs get. The API server accepts no
// less than 10 minutes.
const tokenSeconds = 600

// tokenOf returns a function that reads the bearer token of a hook from its Secret.
func tokenOf(api client.Client, h *spec.HTTP) func(context.Context) (string, error) {
	if h == nil || h.TokenSecret == nil || api == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		secret, err := client.Get[*corev1.Secret](ctx, api, h.TokenSecret.Name, client.InNamespace(h.TokenSecret.Namespace))
		if err != nil {
			return "", err
		}
		key := h.TokenSecret.Key
		if key == "" {
			key = "token"
		}
		value, ok := secret.Data[key]
		if !ok {
			return "", fmt.Errorf("the Secret %s/%s has no key %q", secret.Namespace, secret.Name, key)
		}
		return strings.TrimSpace(string(value)), nil
	}
}

// kubeconfigOf returns a function that writes a kubeconfig for a program.
func kubeconfigOf(api client.Client) func(context.Context) (string, func(), error) {
	if api == nil {
		return nil
	}
	return func(ctx context.Context) (path string, remove func(), err error) {
		config := api.RESTConfig()
		user, err := userOf(ctx, config)
		if err != nil {
			return "", nil, err
		}
		file, err := os.CreateTemp("", "gopf-kubeconfig-") // readable for this user only
		if err != nil {
			return "", nil, err
		}
		remove = func() { _ = os.Remove(file.Name()) }
		defer func() {
			if closed := file.Close(); err == nil {
				err = closed
			}
			if err != nil {
				remove()
			}
		}()
		text, err := clientcmd.Write(clientcmdapi.Config{
			Clusters: map[string]*clientcmdapi.Cluster{"cluster": {
				Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
				InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
			}},
			AuthInfos:      map[string]*clientcmdapi.AuthInfo{"operator": user},
			Contexts:       map[string]*clientcmdapi.Context{"operator": {Cluster: "cluster", AuthInfo: "operator"}},
			CurrentContext: "operator",
		})
		if err != nil {
			return "", nil, err
		}
		_, err = file.Write(text)
		return file.Name(), remove, err
	}
}

// userOf returns the credentials for a program: a token of the operator's service account
// that expires soon. Outside of pods, where there is no service account, it returns the
// operator's own credentials.
func userOf(ctx context.Context, config *rest.Config) (*clientcmdapi.AuthInfo, error) {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		text, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(text))
	}
	namespace, name, ok := serviceAccount(token)
	if !ok {
		if config.ExecProvider != nil || config.AuthProvider != nil {
			return nil, errors.New("the operator's credentials come from a plugin and cannot be handed to programs")
		}
		return &clientcmdapi.AuthInfo{
			Token: token, Username: config.Username, Password: config.Password, Impersonate: config.Impersonate.UserName,
			ClientCertificate: config.CertFile, ClientCertificateData: config.CertData, ClientKey: config.KeyFile, ClientKeyData: config.KeyData,
		}, nil
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	err = core.Post().Namespace(namespace).Resource("serviceaccounts").Name(name).SubResource("token").Body(request).Do(ctx).Into(request)
	if err != nil {
		return nil, fmt.Errorf("request a token for the service account %s/%s: %w", namespace, name, err)
	}
	return &clientcmdapi.AuthInfo{Token: request.Status.Token}, nil
}

// serviceAccount returns the service account of a token. The signature does not matter
// here: the API server checks the token.
func serviceAccount(token string) (namespace, name string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", "", false
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return "", "", false
	}
	fields := strings.Split(claims.Subject, ":")
	if len(fields) != 4 || fields[0] != "system" || fields[1] != "serviceaccount" {
		return "", "", false
	}
	return fields[2], fields[3], true
}
