package insight

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/top"
	"gopf.dev/gopf/kind"
)

// Endpoint is the address of the metrics of a running operator: a URL, or a port of a pod
// that is reached through the API server.
type Endpoint struct {
	URL       string
	Pod       string // NAME; empty means the URL
	Namespace string // of the pod; "" means that of the login
	Port      int
}

// scrapeTimeout limits one request for metrics.
const scrapeTimeout = 10 * time.Second

// Sampled calls use with a function that reads the metrics of the operator.
func (op *Operator) Sampled(ctx context.Context, e Endpoint, use func(read func(context.Context) (*top.Sample, error)) error) error {
	if e.Pod == "" {
		return use(func(ctx context.Context) (*top.Sample, error) { return fromURL(ctx, e.URL) })
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
func fromURL(ctx context.Context, url string) (*top.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w; start the operator with --metrics, or name its pod with --pod", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the metrics at %s: %s", url, strings.ToLower(response.Status))
	}
	return top.Parse(response.Body)
}
