package life_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestSecureMetricsAreForAccountsWithTheRole(t *testing.T) {
	t.Parallel()
	s, d, address := newSpace(t), &diary{}, kit.FreeAddress(t)
	const rbac = "rbac.authorization.k8s.io"
	for _, name := range []string{"reader", "stranger"} {
		s.account(name)
	}
	role := s.Name + "-reader"
	t.Cleanup(func() {
		for _, plural := range []string{"clusterroles", "clusterrolebindings"} {
			s.Remove(rbac+"/v1/"+plural, role)
		}
	})
	s.Create(rbac+"/v1/clusterroles", role, fields{"rules": []fields{{"nonResourceURLs": []string{"/metrics"}, "verbs": []string{"get"}}}})
	s.Create(rbac+"/v1/clusterrolebindings", role, fields{
		"subjects": []fields{{"kind": "ServiceAccount", "name": "reader", "namespace": s.Name}},
		"roleRef":  fields{"apiGroup": rbac, "kind": "ClusterRole", "name": role},
	})
	op := newOperator()
	op.Settings.Metrics.Address, op.Settings.Metrics.Secure = address, true
	d.handles(op, "ours")
	s.start(op).serving()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, c := range []struct {
		token string
		code  int
		text  string
	}{
		{s.token("reader", "reader").BearerToken, http.StatusOK, "gopf_build_info"},
		{s.token("stranger", "stranger").BearerToken, http.StatusForbidden, "nonResourceURL"},
		{"nonsense", http.StatusUnauthorized, "does not accept"},
		{"", http.StatusUnauthorized, "missing"},
	} {
		kit.Eventually(t, func() error { // roles take effect a little later
			req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet, "https://"+address+"/metrics", nil)
			if err != nil {
				return err
			}
			if c.token != "" {
				req.Header.Set("Authorization", "Bearer "+c.token)
			}
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err == nil && (resp.StatusCode != c.code || !strings.Contains(string(body), c.text)) {
				err = fmt.Errorf("got %d %.200s, want %d", resp.StatusCode, body, c.code)
			}
			return err
		})
	}
}
