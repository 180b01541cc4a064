package login

import (
	"crypto/sha256"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// fingerprint identifies credentials without keeping their secrets.
type fingerprint [sha256.Size]byte

// fingerprintOf includes everything that identifies the client to a server, and the
// server. Files are included by content, except tokens, which client-go reads again
// periodically.
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
	put("impersonated extra", c.Impersonate.Extra) // fmt prints maps in order
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
	read, _ := os.ReadFile(path) // the user of the file reports the error
	return path + "\n" + string(read)
}
