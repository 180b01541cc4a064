package gopftest

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	webhooks "gopf.dev/gopf/webhook"
)

// webhookServer returns the webhook server for an operator that [Start] runs on the
// cluster. declared is the server in the operator's settings and may be nil.
func (c *Cluster) webhookServer(declared webhooks.Server, managed string) webhooks.Server {
	if c.Real() {
		if declared == nil {
			return webhooks.Auto{}
		}
		return declared
	}
	s := inProcess{cluster: c, managed: managed}
	switch d := declared.(type) {
	case nil:
	case webhooks.Local:
		s.local = d
	case webhooks.Auto:
		s.local = d.Local
	case webhooks.Service:
		s.service, s.local = &d, d.Listen
	default:
		return declared
	}
	return s
}

// inProcess serves the admission reviews of one operator without sockets. It announces
// the address that the declared server would announce. Replicas of an operator share it.
type inProcess struct {
	cluster *Cluster
	managed string
	local   webhooks.Local
	service *webhooks.Service // nil means that no Service is declared
}

// Bind implements webhook.Binder: by default, the Service is in the namespace of the
// operator.
func (s inProcess) Bind(e webhooks.Environment) webhooks.Server {
	if s.service != nil {
		bound := *s.service
		bound.Namespace = cmp.Or(bound.Namespace, e.Namespace, "default")
		s.service = &bound
	}
	return s
}

// Serve implements webhooks.Server.
func (s inProcess) Serve(ctx context.Context, reviews http.Handler, announce func(webhooks.ClientConfig)) error {
	root := "/" + strings.Trim(s.local.Path, "/")
	answering := &answerer{reviews: http.StripPrefix(strings.TrimSuffix(root, "/"), reviews)}
	host, config := s.address(root)
	at := s.cluster.replicasAt(host)
	at.join(answering)
	announce(config)
	<-ctx.Done()
	at.leave(answering)
	answering.underWay.Wait()
	return nil
}

// address returns the host for [Cluster.ServeWebhooks], and the client configuration to
// announce.
func (s inProcess) address(root string) (host string, config webhooks.ClientConfig) {
	if s.service != nil {
		return s.service.Name + "." + s.service.Namespace + ".svc", webhooks.ClientConfig{Service: &webhooks.ServiceRef{
			Namespace: s.service.Namespace, Name: s.service.Name, Path: root, Port: s.service.Port,
		}}
	}
	host = cmp.Or(s.local.Host, cmp.Or(s.managed, "webhooks")+".test")
	if s.local.Port != 0 {
		host = net.JoinHostPort(host, strconv.Itoa(s.local.Port))
	}
	return host, webhooks.ClientConfig{URL: "https://" + host + root}
}

// replicasAt returns the operators that serve webhooks for the host.
func (c *Cluster) replicasAt(host string) *replicas {
	found, _ := c.webhooks.LoadOrStore(host, &replicas{})
	if r, ok := found.(*replicas); ok {
		return r
	}
	r := &replicas{} // replaces a server that the test registered
	c.webhooks.Store(host, r)
	return r
}

// replicas holds the operators at one address. The last one started serves the reviews.
type replicas struct {
	mu   sync.Mutex
	live []*answerer
}

func (r *replicas) join(a *answerer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = append(r.live, a)
}

func (r *replicas) leave(a *answerer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.live {
		if other == a {
			r.live = append(r.live[:i:i], r.live[i+1:]...)
			return
		}
	}
}

// ServeHTTP implements http.Handler. Without an operator, the webhook fails as if its
// server were unreachable.
func (r *replicas) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	if len(r.live) == 0 {
		r.mu.Unlock()
		http.Error(w, "no operator serves this address", http.StatusServiceUnavailable)
		return
	}
	a := r.live[len(r.live)-1]
	a.underWay.Add(1) // before unlocking: Serve waits for these requests after it left the list
	r.mu.Unlock()
	defer a.underWay.Done()
	a.reviews.ServeHTTP(w, req)
}

// answerer is one operator that serves reviews.
type answerer struct {
	reviews  http.Handler
	underWay sync.WaitGroup
}
