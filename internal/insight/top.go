package insight

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/top"
	"gopf.dev/gopf/kind"
)

// Metrics is the place of the metrics of a running operator: an endpoint, or a port of a
// pod that is reached through the API server.
type Metrics struct {
	Endpoint
	Pod       string // NAME; empty means the endpoint
	Namespace string // of the pod; "" means that of the login
	Port      int
}

// Sampled calls use with a function that reads the metrics of the operator.
func (op *Operator) Sampled(ctx context.Context, e Metrics, use func(read func(context.Context) (*top.Sample, error)) error) error {
	if e.Pod == "" {
		client, err := e.client(func() (*rest.Config, error) { return connect.Login(ctx, op.Connection) })
		if err != nil {
			return err
		}
		return use(func(ctx context.Context) (*top.Sample, error) { return fromURL(ctx, client, e.URL) })
	}
	return connect.CommandIn(ctx, op.Connection, func(_ context.Context, c connect.Connection, _ []kind.Info) error {
		namespace := e.Namespace
		for _, fallback := range []string{c.Namespace, "default"} {
			if namespace == "" {
				namespace = fallback
			}
		}
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", namespace, e.Pod, e.Port)
		return use(func(ctx context.Context) (s *top.Sample, err error) {
			err = c.Client.Document(ctx, path, func(r io.Reader) error {
				s, err = top.Parse(r)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("read the metrics of the pod %s/%s: %w", namespace, e.Pod, err)
			}
			return s, nil
		})
	})
}

// fromURL reads metrics from a URL.
func fromURL(ctx context.Context, client *http.Client, url string) (s *top.Sample, err error) {
	err = fetch(ctx, client, url, "start the operator with --metrics, or name its pod with --pod", func(r io.Reader) error {
		s, err = top.Parse(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the metrics at %s: %w", url, err)
	}
	return s, nil
}
