package login

import (
	"crypto/sha256"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// fingerprint tells credentials apart without keeping their secrets.
type fingerprint [sha256.Size]byte

// fingerprintOf takes everything into account by which a server may tell who
// is calling, and which server that is. What is in files counts by contents,
// but for tokens: those are read again all the time.
func fingerprintOf(c *rest.Config) fingerprint {
	h := sha256.New()
	put := func(name string, value any) { fmt.Fprintf(h, "%s %q\n", name, fmt.Sprint(value)) }
	put("host", c.Host)
	put("path", c.APIPath)
	put("server name", c.ServerName)
	put("insecure", c.Insecure)
	put("authority", content(c.CAData, c.CAFile))
	put("certificate", content(c.CertData, c.CertFile))
	put("user", c.Username)
	put("password", c.Password)
	put("token", c.BearerToken)
	put("token file", c.BearerTokenFile)
	put("impersonated user", c.Impersonate.UserName)
	put("impersonated uid", c.Impersonate.UID)
	put("impersonated groups", c.Impersonate.Groups)
	put("impersonated extra", c.Impersonate.Extra) // maps are printed in order
	if e := c.ExecProvider; e != nil {
		put("plugin", e.Command)
		put("arguments", e.Args)
		put("environment", e.Env)
	}
	if a := c.AuthProvider; a != nil {
		put("provider", a.Name)
		put("settings", a.Config)
	}
	if c.Transport != nil {
		put("transport", fmt.Sprintf("%T %p", c.Transport, c.Transport))
	}
	return fingerprint(h.Sum(nil))
}

func content(data []byte, path string) string {
	if len(data) > 0 || path == "" {
		return string(data)
	}
	read, _ := os.ReadFile(path) // if not, whoever uses it will tell
	return path + "\n" + string(read)
}
