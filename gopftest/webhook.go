package gopftest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
)

// ServeWebhooks registers a handler for the admission webhooks of a host: the host of
// their URL, or NAME.NAMESPACE.svc if they use a service. The handler is called in
// process, so it works inside a testing/synctest bubble. Webhooks of other hosts are
// called over HTTPS.
//
// As usual, ValidatingWebhookConfiguration and MutatingWebhookConfiguration objects in
// the cluster define which writes the webhooks are called for.
func (c *Cluster) ServeWebhooks(host string, h http.Handler) {
	c.memoryOnly("ServeWebhooks")
	c.webhooks.Store(host, h)
}

// ask calls a webhook. A nil response means that the call failed and the failure policy
// is Ignore.
func (s *scope) ask(h hook, r review) (*admissionv1.AdmissionResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(h.timeout)*time.Second)
	defer cancel()
	answer, err := s.send(ctx, h, s.question(r, h))
	switch {
	case err != nil && h.ignore:
		return nil, nil
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.name, err))
	}
	for _, warning := range answer.Warnings {
		if s.warn != nil {
			s.warn(warning)
		}
	}
	if !answer.Allowed {
		return nil, webhookerrors.ToStatusErr(h.name, answer.Result)
	}
	return answer, nil
}

func (s *scope) send(ctx context.Context, h hook, q *admissionv1.AdmissionReview) (*admissionv1.AdmissionResponse, error) {
	target, err := target(h)
	if err != nil {
		return nil, err
	}
	target.RawQuery = "timeout=" + (time.Duration(h.timeout) * time.Second).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(encode(q)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", mediaJSON)
	req.Header.Set("Accept", mediaJSON+", */*")
	resp, err := s.cluster.webhookTransport(target, h.client).RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: Post %q: %w", target, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		answer := apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodPost, schema.GroupResource{}, "", strings.TrimSpace(string(raw)), 0, true)
		return nil, fmt.Errorf("failed to call webhook: %w", answer)
	}
	return verified(raw, q)
}

// verified checks that the response is valid and belongs to the review.
func verified(raw []byte, q *admissionv1.AdmissionReview) (*admissionv1.AdmissionResponse, error) {
	answer := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	switch r := answer.Response; {
	case r == nil:
		return nil, errors.New("received invalid webhook response: webhook response was absent")
	case answer.Kind != q.Kind || answer.APIVersion != q.APIVersion:
		return nil, fmt.Errorf("received invalid webhook response: expected webhook response of %s, got %s",
			q.GroupVersionKind(), answer.GroupVersionKind())
	case r.UID != q.Request.UID:
		return nil, fmt.Errorf("received invalid webhook response: expected response.uid=%q, got %q", q.Request.UID, r.UID)
	case len(r.Patch) > 0 && (r.PatchType == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch):
		return nil, errors.New("received invalid webhook response: response.patchType must be JSONPatch if there is a patch")
	}
	return answer.Response, nil
}

// target returns the URL of a webhook.
func target(h hook) (*url.URL, error) {
	if h.client.URL != nil {
		return url.Parse(*h.client.URL)
	}
	service := h.client.Service
	if service == nil {
		return nil, errors.New("failed to call webhook: neither a URL nor a service is given")
	}
	u := &url.URL{Scheme: "https", Host: service.Name + "." + service.Namespace + ".svc"}
	if service.Port != nil && *service.Port != 443 {
		u.Host += fmt.Sprint(":", *service.Port)
	}
	if service.Path != nil {
		u.Path = *service.Path
	}
	return u, nil
}

// webhookTransport returns the transport to a webhook: in process, or HTTPS.
func (c *Cluster) webhookTransport(target *url.URL, client admissionregistrationv1.WebhookClientConfig) http.RoundTripper {
	for _, host := range []string{target.Host, target.Hostname()} {
		if h, ok := c.webhooks.Load(host); ok {
			return transport{c, h.(http.Handler).ServeHTTP}
		}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(client.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(client.CABundle)
	}
	return &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
}

// patched returns the object with the patch of a webhook applied.
func patched(obj *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	ops, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	raw, err := ops.Apply(encode(obj.Object))
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var content map[string]any
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// writer returns the user of the write. The test's own writes are not limited.
func (s *scope) writer() authenticationv1.UserInfo {
	if s.user.Username != "" {
		return s.user
	}
	return authenticationv1.UserInfo{Username: operator, Groups: []string{"system:masters", "system:authenticated"}}
}
