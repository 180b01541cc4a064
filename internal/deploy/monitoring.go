package deploy

import (
	"encoding/json"
	"fmt"
)

// monitoring returns a ServiceMonitor and alert rules for the Prometheus operator, and a
// Grafana dashboard in a ConfigMap.
func (m *Model) monitoring() []object {
	return []object{
		{
			"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": m.meta(m.Name),
			"spec": object{"selector": object{"matchLabels": m.selector()}, "endpoints": list{m.scraped()}},
		},
		{
			"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": m.meta(m.Name),
			"spec": object{"groups": list{object{"name": m.Name, "rules": m.alerts()}}},
		},
		m.dashboard(),
	}
}

// scraped returns how Prometheus reads the metrics. If they are secure, it sends the token of
// its service account. The certificate is self-signed unless files are configured.
func (m *Model) scraped() object {
	endpoint := object{"port": "metrics"}
	if m.Operator.Settings.SecureMetrics {
		endpoint["scheme"] = "https"
		endpoint["bearerTokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		endpoint["tlsConfig"] = object{"insecureSkipVerify": true}
	}
	return endpoint
}

// alerts returns the rules of docs/metrics.md, for the job of this operator.
func (m *Model) alerts() (all list) {
	job := fmt.Sprintf("{job=%q}", m.Name+"-metrics")
	and := func(more string) string { return fmt.Sprintf("{job=%q,%s}", m.Name+"-metrics", more) }
	for _, a := range [][3]string{
		{"OperatorDoesNotRun", `absent(max(gopf_leading` + job + `) == 1)`, "No replica of the operator handles objects."},
		{"OperatorSeesNothing", `max by (resource) (gopf_stream_silence_seconds` + job + `) > 180 or sum by (resource) (gopf_streams` + and(`state="failing"`) + `) > 0`,
			"The operator gets no events of {{ $labels.resource }}."},
		{"HandlersFail", `sum by (resource, handler) (rate(gopf_handler_runs_total` + and(`outcome=~"failed|retried"`) + `[10m])) / sum by (resource, handler) (rate(gopf_handler_runs_total` + job + `[10m])) > 0.2`,
			"The handler {{ $labels.handler }} of {{ $labels.resource }} fails in more than 20 % of its calls."},
		{"OperatorIsBehind", `max by (resource) (gopf_queue_oldest_age_seconds` + job + `) > 300`, "Objects of {{ $labels.resource }} wait for more than 5 minutes."},
		{"WebhookCertificateExpires", `min(gopf_webhook_certificate_expiry_timestamp_seconds` + job + `) - time() < 7 * 24 * 3600`, "The certificate of the webhook server expires within a week."},
		{"OperatorCannotServe", `max(gopf_unserved_declarations` + job + `) > 0`, "Resources of the operator are missing, forbidden or ambiguous."},
	} {
		all = append(all, object{
			"alert": a[0], "expr": a[1], "for": "10m", "labels": object{"severity": "warning", "operator": m.Name}, "annotations": object{"summary": a[2]},
		})
	}
	return all
}

// dashboard returns a ConfigMap that the usual sidecar of Grafana loads.
func (m *Model) dashboard() object {
	job := fmt.Sprintf("job=%q", m.Name+"-metrics")
	selected := job + `,resource=~"$resource"`
	panel := func(n int, title string, expressions ...string) object {
		var targets list
		for i, e := range expressions {
			targets = append(targets, object{"expr": e, "refId": string(rune('A' + i))})
		}
		return object{
			"id": n, "type": "timeseries", "title": title, "targets": targets,
			"gridPos": object{"x": (n - 1) % 2 * 12, "y": (n - 1) / 2 * 8, "w": 12, "h": 8},
		}
	}
	content := object{
		"title": m.Name, "uid": m.Name, "schemaVersion": 39, "time": object{"from": "now-6h", "to": "now"},
		"templating": object{"list": list{object{
			"name": "resource", "type": "query", "includeAll": true, "multi": true, "query": "label_values(gopf_streams{" + job + "}, resource)",
		}}},
		"panels": list{
			panel(1, "Calls by outcome", "sum by (outcome) (rate(gopf_handler_runs_total{"+selected+"}[$__rate_interval]))"),
			panel(2, "Duration of handlers, 95 %", "histogram_quantile(0.95, sum by (le, handler) (rate(gopf_handler_duration_seconds_bucket{"+selected+"}[$__rate_interval])))"),
			panel(3, "Backlog", "gopf_queue_depth{"+selected+"}", "gopf_retries_waiting{"+selected+"}"),
			panel(4, "Requests by code", "sum by (code) (rate(gopf_api_requests_total{"+job+"}[$__rate_interval]))"),
		},
	}
	text, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("encode the dashboard: %v", err)) // it consists of JSON values
	}
	meta := m.meta(m.Name + "-dashboard")
	meta["labels"].(object)["grafana_dashboard"] = "1"
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": object{m.Name + ".json": string(text)}}
}
