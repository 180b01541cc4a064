package insight

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
				return nil, fmt.Errorf("read the metrics of the pod %s/%s: %w%s", namespace, e.Pod, err, e.advice(namespace, err))
			}
			return s, nil
		})
	})
}

// advice returns what to do after an error of the metrics of a pod. "" means that the error
// says it. The API server removes the user's token from requests that it forwards, so secure
// metrics cannot be read in this way.
func (e Metrics) advice(namespace string, err error) string {
	switch {
	case strings.Contains(err.Error(), "HTTP request to an HTTPS server"), apierrors.IsUnauthorized(err):
		return fmt.Sprintf("; the metrics are secure, and the API server forwards no token: run 'kubectl port-forward --namespace %s pod/%s %d', and use --url https://localhost:%[3]d/metrics --insecure-skip-tls-verify",
			namespace, e.Pod, e.Port)
	case apierrors.IsForbidden(err):
		return "; you need the verb get on pods/proxy, or use kubectl port-forward and --url"
	case apierrors.IsNotFound(err):
		return "; name a pod of the operator with --pod, and its namespace with --namespace"
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err):
		return fmt.Sprintf("; start the operator with --metrics=:%d, or name the port of its metrics with --port", e.Port)
	}
	return ""
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
