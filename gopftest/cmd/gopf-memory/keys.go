package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"
)

// validity is longer than any run of the server.
const validity = 365 * 24 * time.Hour

// keys are the certificate of the server, and the token of its only client, the
// administrator. Both are new at every start.
type keys struct {
	pair  tls.Certificate
	ca    []byte // the certificate in PEM; it is self-signed
	token string
}

func newKeys() (*keys, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "gopf-memory"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &keys{
		pair:  tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		ca:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		token: rand.Text(),
	}, nil
}

// kubeconfig returns the administrator's kubeconfig. The file has all keys, so it may be
// copied.
func (k *keys) kubeconfig(server string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: gopf-memory
clusters:
- name: gopf-memory
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: gopf-memory
  user:
    token: %s
contexts:
- name: gopf-memory
  context:
    cluster: gopf-memory
    user: gopf-memory
    namespace: default
`, server, base64.StdEncoding.EncodeToString(k.ca), k.token)
}

// authenticate rejects requests without the token: other users of the machine can reach the
// port.
func (k *keys) authenticate(next http.Handler) http.Handler {
	want := []byte("Bearer " + k.token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
			return
		}
		next.ServeHTTP(w, r)
	})
}
