// Package admission serves validating and mutating admission webhooks. A [Reviewer]
// answers admission reviews by calling handlers, [Configurations] manages the webhook
// configurations in the cluster, and a [Control] runs both together with the server.
package admission

import (
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/webhook"
)

// Name returns the name of a handler's webhook in the managed configuration: a domain
// name. managed may be empty.
//
// Where Kubernetes accepts Kopf's name, it is the same. Kopf keeps capital letters and
// letters of other alphabets, which Kubernetes refuses. They become lower-case letters
// and hexadecimal codes.
func Name(id, managed string) string {
	name := domain(id)
	if managed == "" {
		return name
	}
	return name + "." + managed
}

// domain returns an id with the characters replaced that a domain name cannot have.
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

// For returns the client configuration of one handler's webhook on the server.
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

// servicePath returns the id as a path of a Service. Kubernetes accepts only paths whose
// parts are domain names; other ids are converted to a domain name.
func servicePath(id string) string {
	for part := range strings.SplitSeq(id, "/") {
		if len(validation.IsDNS1123Subdomain(part)) > 0 {
			return domain(id)
		}
	}
	return id
}

// escape returns the id as an escaped path of a URL.
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
