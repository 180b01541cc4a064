package call

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// authority signs client certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

// write writes the certificate of a client and its key.
func (a authority) write(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAHookGetsTheClientCertificateEvenAfterARotation(t *testing.T) {
	ca := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"result": "`+r.TLS.PeerCertificates[0].Subject.CommonName+`"}`)
	}))
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	ca.write(t, "first", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	of := spec.HTTP{URL: server.URL, CAFile: "ca.pem", CertFile: "cert.pem", KeyFile: "key.pem"}
	h, err := NewHTTP(Options{Dir: dir, Call: spec.Call{HTTP: &of}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		ca.write(t, name, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
		h.Close() // the next call makes a new connection
		if out, err := h.Call(t.Context(), request(nil)); err != nil || out.Result != name {
			t.Errorf("%s: got %v, %v", name, out.Result, err)
		}
	}
	of.CertFile, of.KeyFile = "", ""
	without, err := NewHTTP(Options{Dir: dir, Call: spec.Call{HTTP: &of}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.Call(t.Context(), request(nil)); err == nil {
		t.Error("a call without a certificate succeeded")
	}
	of.CertFile, of.KeyFile = "none.pem", "key.pem"
	if _, err := NewHTTP(Options{Dir: dir, Call: spec.Call{HTTP: &of}}); err == nil {
		t.Error("a missing file is no error")
	}
}
