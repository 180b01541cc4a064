package metacontroller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf/client"
)

// Connection are the credentials for the server of a hook.
type Connection struct {
	CABundle *struct {
		Inline       string     `json:"inline"`
		SecretRef    *SecretKey `json:"secretRef"`
		ConfigMapRef *SecretKey `json:"configMapRef"`
	} `json:"caBundle"`
	ClientTLS *struct {
		SecretRef     SecretKey `json:"secretRef"`
		CertKey       string    `json:"certKey"`
		PrivateKeyKey string    `json:"privateKeyKey"`
	} `json:"clientTLS"`
	Authorization *struct {
		Type      string    `json:"type"`
		SecretRef SecretKey `json:"secretRef"`
	} `json:"authorization"`
	BasicAuth *struct {
		SecretRef   SecretKey `json:"secretRef"`
		UsernameKey string    `json:"usernameKey"`
		PasswordKey string    `json:"passwordKey"`
	} `json:"basicAuth"`
}

// SecretKey names a Secret or a ConfigMap, and a key in it.
type SecretKey struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
}

// EndpointConfig are the credentials for a host.
type EndpointConfig struct {
	Host string `json:"host"`
	Connection
}

// ConnectionOf returns the credentials of a webhook: its own, or those of the first entry
// for its host. They are never mixed.
func ConnectionOf(own Connection, address string, configs []EndpointConfig) Connection {
	if own != (Connection{}) {
		return own
	}
	u, err := url.Parse(address)
	if err != nil {
		return own
	}
	for _, c := range configs {
		if sameHost(c.Host, u) {
			return c.Connection
		}
	}
	return own
}

// sameHost reports whether a host, with or without a port, is that of the URL.
func sameHost(host string, u *url.URL) bool {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil {
		return strings.EqualFold(host, u.Hostname())
	}
	return strings.EqualFold(name, u.Hostname()) && given == port
}

// credentials are the resolved form of a [Connection].
type credentials struct {
	header string // of Authorization
	tls    *tls.Config
}

// resolve reads the Secrets and ConfigMaps of a connection.
func (c Connection) resolve(ctx context.Context, api client.Client) (resolved credentials, err error) {
	if c.Authorization != nil && c.BasicAuth != nil {
		return resolved, errors.New("authorization and basicAuth are mutually exclusive")
	}
	if c.Authorization != nil {
		if resolved.header, err = c.bearer(ctx, api); err != nil {
			return resolved, fmt.Errorf("can't resolve authorization: %w", err)
		}
	}
	if c.BasicAuth != nil {
		if resolved.header, err = c.basic(ctx, api); err != nil {
			return resolved, fmt.Errorf("can't resolve basicAuth: %w", err)
		}
	}
	if c.CABundle == nil && c.ClientTLS == nil {
		return resolved, nil
	}
	resolved.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CABundle != nil {
		text, err := c.ca(ctx, api)
		if err != nil {
			return resolved, fmt.Errorf("can't resolve caBundle: %w", err)
		}
		resolved.tls.RootCAs = x509.NewCertPool()
		if !resolved.tls.RootCAs.AppendCertsFromPEM(text) {
			return resolved, errors.New("caBundle: no valid PEM-encoded certificates found in the provided CA bundle")
		}
	}
	if t := c.ClientTLS; t != nil {
		data, err := secret(ctx, api, "clientTLS", t.SecretRef)
		if err != nil {
			return resolved, fmt.Errorf("can't resolve clientTLS: %w", err)
		}
		pair, err := tls.X509KeyPair(data[or(t.CertKey, "tls.crt")], data[or(t.PrivateKeyKey, "tls.key")])
		if err != nil {
			return resolved, fmt.Errorf("can't resolve clientTLS: %w", err)
		}
		resolved.tls.Certificates = []tls.Certificate{pair}
	}
	return resolved, nil
}

func (c Connection) bearer(ctx context.Context, api client.Client) (string, error) {
	a := c.Authorization
	if strings.EqualFold(a.Type, "basic") {
		return "", fmt.Errorf("authorization type %q is not supported; use the basicAuth field instead", a.Type)
	}
	data, err := secret(ctx, api, "authorization", a.SecretRef)
	if err != nil {
		return "", err
	}
	value, ok := data[a.SecretRef.Key]
	if !ok {
		return "", fmt.Errorf("the Secret %s/%s has no key %q", a.SecretRef.Namespace, a.SecretRef.Name, a.SecretRef.Key)
	}
	return or(a.Type, "Bearer") + " " + strings.TrimSpace(string(value)), nil
}

func (c Connection) basic(ctx context.Context, api client.Client) (string, error) {
	b := c.BasicAuth
	data, err := secret(ctx, api, "basicAuth", b.SecretRef)
	if err != nil {
		return "", err
	}
	user := strings.TrimSpace(string(data[or(b.UsernameKey, "username")]))
	if strings.Contains(user, ":") {
		return "", errors.New("the user name contains a colon")
	}
	request := http.Request{Header: http.Header{}}
	request.SetBasicAuth(user, strings.TrimSpace(string(data[or(b.PasswordKey, "password")])))
	return request.Header.Get("Authorization"), nil
}

func (c Connection) ca(ctx context.Context, api client.Client) ([]byte, error) {
	b, sources := c.CABundle, 0
	for _, given := range []bool{len(b.Inline) > 0, b.SecretRef != nil, b.ConfigMapRef != nil} {
		if given {
			sources++
		}
	}
	switch {
	case sources > 1:
		return nil, errors.New("caBundle has more than one source set: exactly one of inline, secretRef, or configMapRef must be specified")
	case b.SecretRef != nil:
		data, err := secret(ctx, api, "caBundle", *b.SecretRef)
		return data[or(b.SecretRef.Key, "ca.crt")], err
	case b.ConfigMapRef != nil:
		config, err := client.Get[*corev1.ConfigMap](ctx, api, b.ConfigMapRef.Name, client.InNamespace(b.ConfigMapRef.Namespace))
		if err != nil {
			return nil, fmt.Errorf("can't get caBundle configmap %s/%s: %w", b.ConfigMapRef.Namespace, b.ConfigMapRef.Name, err)
		}
		return []byte(config.Data[or(b.ConfigMapRef.Key, "ca.crt")]), nil
	}
	return []byte(b.Inline), nil
}

func secret(ctx context.Context, api client.Client, what string, ref SecretKey) (map[string][]byte, error) {
	s, err := client.Get[*corev1.Secret](ctx, api, ref.Name, client.InNamespace(ref.Namespace))
	if err != nil {
		return nil, fmt.Errorf("can't get %s secret %s/%s: %w", what, ref.Namespace, ref.Name, err)
	}
	return s.Data, nil
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
