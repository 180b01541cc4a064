package otel

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// transport observes requests to the API server that belong to a turn or to a call. Others,
// such as watches and renewals of the lease, pass through.
type transport struct {
	next     http.RoundTripper
	observer *observer
}

// WrappedRoundTripper returns the inner transport. client-go calls it.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, inside := within(req.Context(), nil)
	if !inside {
		return t.next.RoundTrip(req)
	}
	verb, resource := describe(req)
	known := []attribute.KeyValue{attribute.String("gopf.api.verb", verb), attribute.String("gopf.resource", resource)}
	ctx, span := t.observer.tracer.Start(ctx, verb+" "+resource, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(known...),
		trace.WithAttributes(attribute.String("http.request.method", req.Method), attribute.String("url.path", req.URL.Path), attribute.String("server.address", req.URL.Hostname())))
	defer span.End()
	req = req.Clone(ctx)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	began := time.Now()
	resp, err := t.next.RoundTrip(req)
	code := 0
	switch {
	case err != nil:
		span.RecordError(err)
		span.SetStatus(codes.Error, "no response")
	default:
		code = resp.StatusCode
		span.SetAttributes(attribute.Int("http.response.status_code", code))
		if code >= http.StatusBadRequest {
			span.SetStatus(codes.Error, strconv.Itoa(code))
		}
	}
	t.observer.requests.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(append(known, attribute.Int("http.response.status_code", code))...))
	return resp, err
}

// describe returns the verb and the resource of a request, such as patch and
// databases.example.com/status. Of other paths, the resource is the first part.
func describe(req *http.Request) (verb, resource string) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	group := ""
	verb = strings.ToLower(req.Method)
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = "."+parts[1], parts[3:]
	default:
		return verb, "/" + parts[0]
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	resource = parts[0] + group
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	switch {
	case req.Method == http.MethodPost:
		verb = "create"
	case req.Method == http.MethodPut:
		verb = "update"
	case req.Method == http.MethodGet && req.URL.Query().Get("watch") != "" && req.URL.Query().Get("watch") != "false":
		verb = "watch"
	case req.Method == http.MethodGet && len(parts) == 1:
		verb = "list"
	}
	return verb, resource
}
