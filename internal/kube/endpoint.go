package kube

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// EndpointTransport returns a transport to another server than the API server, with the
// credentials of cfg: a token, the token of an exec plugin, or a client certificate. It
// verifies the server with the roots instead of the certificates of the cluster. nil means
// those of the system. insecure means that the server is not verified.
//
// The caller must use it only for servers that may see the token, and only over TLS.
func EndpointTransport(cfg *rest.Config, roots *x509.CertPool, insecure bool) (http.RoundTripper, error) {
	own := rest.CopyConfig(cfg)
	own.Transport, own.Impersonate = nil, rest.ImpersonationConfig{} // both are for the API server
	own.Username, own.Password = "", ""
	given := cfg.TLSClientConfig
	own.TLSClientConfig = rest.TLSClientConfig{CertFile: given.CertFile, KeyFile: given.KeyFile, CertData: given.CertData, KeyData: given.KeyData}
	tc, err := own.TransportConfig()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	tlsConfig.RootCAs, tlsConfig.InsecureSkipVerify = roots, insecure
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout}
	if tc.DialHolder != nil { // of an exec plugin: it closes connections when its certificate changes
		t.DialContext = tc.DialHolder.Dial
	}
	return transport.HTTPWrappersForConfig(tc, t)
}
