package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// cluster is a client made only from a kubeconfig, which it thereby tests: the CA in the
// file must verify the certificate of the server.
type cluster struct {
	t      *testing.T
	server string
	ca     *x509.CertPool
	http   *http.Client
	token  string // used instead of the certificate if not empty
}

func connect(t *testing.T, kubeconfig string) *cluster {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Cert []byte `json:"client-certificate-data"`
				Key  []byte `json:"client-key-data"`

				Token string `json:"token"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, server: config.Clusters[0].Cluster.Server, ca: x509.NewCertPool()}
	if !c.ca.AppendCertsFromPEM(config.Clusters[0].Cluster.CA) {
		t.Fatal("no certificate authority in the kubeconfig")
	}
	if token := config.Users[0].User.Token; token != "" {
		return c.as(token)
	}
	cert, err := tls.X509KeyPair(config.Users[0].User.Cert, config.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	c.http = client(t, &tls.Config{RootCAs: c.ca, Certificates: []tls.Certificate{cert}})
	return c
}

// as returns a client of the same cluster with a bearer token.
func (c *cluster) as(token string) *cluster {
	return &cluster{t: c.t, server: c.server, ca: c.ca, token: token, http: client(c.t, &tls.Config{RootCAs: c.ca})}
}

func client(t *testing.T, config *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// do sends a request, and returns the status code and the object in the response.
func (c *cluster) do(method, path, body string) (int, map[string]any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 30*time.Second) // cleanups also use it
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var object map[string]any
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&object); err != nil {
		c.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return response.StatusCode, object
}

// create creates an object and returns it.
func (c *cluster) create(path, body string) map[string]any {
	c.t.Helper()
	code, object := c.do("POST", path, body)
	if code != http.StatusCreated {
		c.t.Fatalf("POST %s: %d %v", path, code, object["message"])
	}
	return object
}

// await repeats a GET request until the condition holds for the response.
func (c *cluster) await(path string, holds func(code int, object map[string]any) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, object := c.do("GET", path, "")
		if holds(code, object) {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("GET %s after a minute: %d %v", path, code, object)
		}
	}
}

func gone(code int, _ map[string]any) bool { return code == http.StatusNotFound }

// lookup returns the string at the path of an object, or "".
func lookup(object any, path ...string) string {
	for _, name := range path {
		fields, _ := object.(map[string]any)
		object = fields[name]
	}
	text, _ := object.(string)
	return text
}
