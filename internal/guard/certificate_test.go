package guard

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writePair writes a new certificate and its key, and returns the certificate.
func writePair(t *testing.T, certFile, keyFile string) []byte {
	t.Helper()
	made, err := selfSigned(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: made.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if file == "" {
			continue
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return made.Certificate[0]
}

func served(t *testing.T, c *Certificate) []byte {
	t.Helper()
	got, err := c.TLS().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.Certificate[0]
}

func TestChangedFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		var log bytes.Buffer
		first := writePair(t, cert, key)
		c, err := NewCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(served(t, c), first) {
			t.Error("another certificate is served")
		}
		second := writePair(t, cert, key)
		time.Sleep(rereadAfter)
		if !bytes.Equal(served(t, c), second) {
			t.Error("the new certificate is not served")
		}
		writePair(t, cert, "") // the key does not belong to it
		time.Sleep(rereadAfter)
		if !bytes.Equal(served(t, c), second) || !strings.Contains(log.String(), "The previous one is used.") {
			t.Errorf("a certificate without its key: %s", log.String())
		}
		if err := os.Remove(cert); err != nil {
			t.Fatal(err)
		}
		time.Sleep(rereadAfter)
		if !bytes.Equal(served(t, c), second) {
			t.Error("the certificate is gone with its file")
		}
	})
}

func TestFilesThatCannotBeUsedAreErrorsAtTheStart(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writePair(t, cert, key)
	for want, files := range map[string][2]string{"read the certificate": {dir + "/none", key}, "read the key": {cert, dir + "/none"}, "use the certificate": {key, key}, "together": {cert, ""}} {
		if _, err := NewCertificate(files[0], files[1], nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSelfSignedCertificatesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := NewCertificate("", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		first := served(t, c)
		leaf, err := x509.ParseCertificate(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := leaf.VerifyHostname("localhost"); err != nil {
			t.Error(err)
		}
		time.Sleep(validFor / 2)
		if !bytes.Equal(served(t, c), first) {
			t.Error("it was renewed too early")
		}
		time.Sleep(validFor / 4)
		if bytes.Equal(served(t, c), first) {
			t.Error("it was not renewed")
		}
	})
}
