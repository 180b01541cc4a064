package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity of all certificates: longer than any development cluster is used.
const validity = 10 * 365 * 24 * time.Hour

// keys are the files with the keys and certificates of the control plane. They are
// created once per data folder: kubeconfigs and tokens stay valid across restarts.
type keys struct {
	caCert, caKey           string // signs all certificates, including those of CertificateSigningRequests
	servingCert, servingKey string // the API server's
	adminCert, adminKey     string // a client in group system:masters
	serviceAccounts         string // signs service-account tokens
}

// loadKeys creates the keys and certificates that the folder lacks.
func loadKeys(f *folder) (*keys, error) {
	dir := f.path("pki")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for keys: %w", err)
	}
	k := &keys{
		caCert: dir + "/ca.crt", caKey: dir + "/ca.key",
		servingCert: dir + "/apiserver.crt", servingKey: dir + "/apiserver.key",
		adminCert: dir + "/admin.crt", adminKey: dir + "/admin.key",
		serviceAccounts: dir + "/service-accounts.key",
	}
	if err := ensurePair(k.caCert, k.caKey, caTemplate(), nil); err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	ca, err := loadPair(k.caCert, k.caKey)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	if err := ensurePair(k.servingCert, k.servingKey, servingTemplate(), ca); err != nil {
		return nil, fmt.Errorf("make the API server's certificate: %w", err)
	}
	if err := ensurePair(k.adminCert, k.adminKey, adminTemplate(), ca); err != nil {
		return nil, fmt.Errorf("make the administrator's certificate: %w", err)
	}
	if there, err := exists(k.serviceAccounts); err != nil || there {
		return k, err
	}
	if _, err := newKey(k.serviceAccounts); err != nil {
		return nil, fmt.Errorf("make the key for service-account tokens: %w", err)
	}
	return k, nil
}

func caTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
}

func servingTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	}
}

func adminTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// ensurePair writes a certificate made from the template unless the file exists. A nil
// signer means that the certificate signs itself.
func ensurePair(certPath, keyPath string, template *x509.Certificate, signer *pair) error {
	if there, err := exists(certPath, keyPath); err != nil || there {
		return err
	}
	key, err := newKey(keyPath)
	if err != nil {
		return err
	}
	if signer == nil {
		signer = &pair{cert: template, key: key}
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	// Clocks of containers and virtual machines may lag behind.
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, key.Public(), signer.key)
	if err != nil {
		return err
	}
	return writeFile(certPath, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func newKey(path string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func loadPair(certPath, keyPath string) (*pair, error) {
	certBlock, err := readPEM(certPath)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(certBlock)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", certPath, err)
	}
	keyBlock, err := readPEM(keyPath)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", keyPath, err)
	}
	return &pair{cert: cert, key: key}, nil
}

func readPEM(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New(path + " is not a PEM file")
	}
	return block.Bytes, nil
}
