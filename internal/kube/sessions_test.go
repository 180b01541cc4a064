package kube

import (
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

func TestConnectionsResumeTheTLSSession(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.sign(t, "me")
	for name, c := range map[string]struct {
		configure func(t *testing.T, cfg *rest.Config)
		resumed   bool
	}{
		"with a token":       {func(_ *testing.T, cfg *rest.Config) { cfg.BearerToken = "me" }, true},
		"with a certificate": {func(_ *testing.T, cfg *rest.Config) { cfg.CertData, cfg.KeyData = cert, key }, true},
		// The session has the former certificate, and the files may have another one.
		"with certificate files": {func(t *testing.T, cfg *rest.Config) {
			folder := t.TempDir()
			cfg.CertFile, cfg.KeyFile = filepath.Join(folder, "cert"), filepath.Join(folder, "key")
			write(t, cfg.CertFile, cert)
			write(t, cfg.KeyFile, key)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := ca.open(t)
			b.allow("me")
			cfg := b.config(ca.pem)
			c.configure(t, cfg)
			client := quickClient(t, cfg)
			mustGet(t, client)
			if b.resumptions() != 0 {
				t.Error("the first connection resumed a session")
			}
			client.CloseIdle()
			mustGet(t, client)
			if got := b.resumptions() != 0; got != c.resumed {
				t.Errorf("the second connection resumed a session: got %v, want %v", got, c.resumed)
			}

			// Other credentials begin with a session of their own.
			other := *cfg
			if err := client.Use(&other); err != nil {
				t.Fatal(err)
			}
			before := b.resumptions()
			mustGet(t, client)
			if b.resumptions() != before {
				t.Error("new credentials resumed the session of the former ones")
			}
		})
	}
}
