// Package admission answers reviews of requests to the API with the help of
// handlers, and keeps the cluster's webhook configurations so that it is asked.
package admission

import (
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/webhook"
)

// Name is the name of a handler's webhook in the configuration of the given
// name: a domain name.
//
// Those that Kubernetes accepts are the same as Kopf's. Capital letters and
// letters of other alphabets, which Kopf keeps and Kubernetes refuses, become
// small letters and hexadecimal codes.
func Name(id, managed string) string {
	name := domain(id)
	if managed == "" {
		return name
	}
	return name + "." + managed
}

// domain is an id without what a domain name cannot have.
func domain(id string) string {
	var name strings.Builder
	for _, r := range strings.ToLower(id) {
		switch {
		case r == '/':
			name.WriteByte('.')
		case r == '_':
			name.WriteByte('-')
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.', r == '-':
			name.WriteRune(r)
		default:
			name.WriteString(hex.EncodeToString([]byte(string(r))))
		}
	}
	return name.String()
}

// For tells how to reach the webhook of one handler of a server.
func For(server webhook.ClientConfig, id string) webhook.ClientConfig {
	if server.URL != "" {
		server.URL = strings.TrimRight(server.URL, "/") + "/" + escape(id)
	}
	if server.Service != nil {
		service := *server.Service
		service.Path = strings.TrimRight(service.Path, "/") + "/" + servicePath(id)
		server.Service = &service
	}
	return server
}

// servicePath is the id as a path behind a Service. Kubernetes takes only those
// whose parts are domain names; other ids are made one.
func servicePath(id string) string {
	for part := range strings.SplitSeq(id, "/") {
		if len(validation.IsDNS1123Subdomain(part)) > 0 {
			return domain(id)
		}
	}
	return id
}

// escape writes an id as the path of a URL.
func escape(id string) string {
	const upper = "0123456789ABCDEF"
	var path strings.Builder
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_.-~/", c) >= 0:
			path.WriteByte(c)
		default:
			path.WriteByte('%')
			path.WriteByte(upper[c>>4])
			path.WriteByte(upper[c&15])
		}
	}
	return path.String()
}
