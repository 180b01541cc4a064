package migrate

import (
	"fmt"
	"strconv"
	"strings"

	"gopf.dev/gopf/internal/dev/python"
)

// setting is the Go counterpart of a setting of Kopf, and its type.
type setting struct{ path, typ string }

var settings = map[string]setting{
	"process.ultimate_exiting_timeout":         {"Process.UltimateExitingTimeout", "duration"},
	"posting.enabled":                          {"Posting.Enabled", "bool"},
	"posting.loggers":                          {"Posting.Loggers", "bool"},
	"posting.level":                            {"Posting.Level", "level"},
	"posting.reporting_component":              {"Posting.ReportingComponent", "string"},
	"posting.reporting_instance":               {"Posting.ReportingInstance", "string"},
	"posting.event_name_prefix":                {"Posting.EventNamePrefix", "string"},
	"peering.name":                             {"Peering.Name", "string"},
	"peering.priority":                         {"Peering.Priority", "int"},
	"peering.lifetime":                         {"Peering.Lifetime", "duration"},
	"peering.mandatory":                        {"Peering.Mandatory", "bool"},
	"peering.standalone":                       {"Peering.Standalone", "bool"},
	"peering.stealth":                          {"Peering.Stealth", "bool"},
	"peering.clusterwide":                      {"Peering.Clusterwide", "bool"},
	"watching.reconnect_backoff":               {"Watching.ReconnectBackoff", "duration"},
	"watching.inactivity_timeout":              {"Watching.InactivityTimeout", "duration"},
	"watching.server_timeout":                  {"", "Gopf probes silent watches by itself"},
	"watching.client_timeout":                  {"", "Gopf probes silent watches by itself"},
	"watching.connect_timeout":                 {"", "Gopf probes silent watches by itself"},
	"queueing.worker_limit":                    {"Queueing.WorkerLimit", "int"},
	"queueing.exit_timeout":                    {"Queueing.ExitTimeout", "duration"},
	"queueing.error_delays":                    {"Queueing.ErrorDelays", "durations"},
	"queueing.idle_timeout":                    {"", "objects without work have no worker"},
	"queueing.batch_window":                    {"", "it has no effect in Kopf either"},
	"scanning.disabled":                        {"Scanning.Disabled", "bool"},
	"admission.server":                         {"Admission.Server", "server"},
	"admission.managed":                        {"Admission.Managed", "string"},
	"execution.default_backoff":                {"Execution.DefaultBackoff", "duration"},
	"execution.max_workers":                    {"Execution.MaxWorkers", "int"},
	"execution.executor":                       {"", "there are no threads"},
	"background.cancellation_polling":          {"Background.CancellationPolling", "duration"},
	"background.instant_exit_timeout":          {"", "the exit of a daemon is noticed at once"},
	"background.instant_exit_zero_time_cycles": {"", "the exit of a daemon is noticed at once"},
	"networking.request_timeout":               {"Networking.RequestTimeout", "duration"},
	"networking.connect_timeout":               {"Networking.ConnectTimeout", "duration"},
	"networking.error_backoffs":                {"Networking.ErrorDelays", "durations"},
	"networking.enforce_retry_after":           {"Networking.EnforceRetryAfter", "bool"},
	"networking.trust_env":                     {"Networking.TrustEnv", "bool"},
	"persistence.finalizer":                    {"Persistence.Finalizer", "string"},
	"persistence.progress_storage":             {"Persistence.Progress", "progress"},
	"persistence.diffbase_storage":             {"Persistence.Base", "base"},
	"persistence.consistency_timeout":          {"", "the operator waits for its own writes without a limit"},
}

var logLevelNames = map[string]string{"DEBUG": "slog.LevelDebug", "INFO": "slog.LevelInfo", "WARNING": "slog.LevelWarn", "WARN": "slog.LevelWarn", "ERROR": "slog.LevelError", "CRITICAL": "slog.LevelError"}

// settingsOf translates the settings in the body of a startup handler, and returns the other
// statements.
func (o *operator) settingsOf(f *function) (rest []*python.Stmt) {
	for _, s := range f.stmt.Body {
		name := ""
		if s.Kind == python.Assign && len(s.Targets) == 1 {
			dotted, _ := s.Targets[0].Dotted()
			name, _ = strings.CutPrefix(dotted, "settings.")
			if name == dotted {
				name = ""
			}
		}
		if name == "" {
			o.conditionalSettings(f.module, s)
			rest = append(rest, s)
			continue
		}
		o.report.Settings++
		name = strings.Replace(name, "batching.", "queueing.", 1)
		known, ok := settings[name]
		switch {
		case !ok:
			o.report.left(f.module, s.Line, "the setting %s is unknown", name)
		case known.path == "":
			o.report.Set++
			o.report.note(f.module, s.Line, "settings.%s has no counterpart and needs none: %s", name, known.typ)
		default:
			code, ok := o.setting(f.module, known.typ, s.Value)
			if !ok {
				o.report.left(f.module, s.Line, "the setting %s = %s is not translated; see op.Settings.%s", name, short(s.Value.Source), known.path)
				o.elsewhere = o.elsewhere || strings.HasPrefix(name, "persistence.")
				continue
			}
			o.report.Set++
			o.settings = append(o.settings, "op.Settings."+known.path+" = "+code)
		}
	}
	return rest
}

// conditionalSettings reports settings that are assigned inside of a block.
func (o *operator) conditionalSettings(m *module, s *python.Stmt) {
	for _, inner := range s.Body {
		o.conditionalSettings(m, inner)
		if inner.Kind == python.Assign {
			if dotted, _ := inner.Targets[0].Dotted(); strings.HasPrefix(dotted, "settings.") {
				o.report.Settings++
				o.elsewhere = o.elsewhere || strings.Contains(dotted, ".persistence.")
				o.report.left(m, inner.Line, "the setting %s depends on a condition: set it in newOperator", strings.TrimPrefix(dotted, "settings."))
			}
		}
	}
}

func (o *operator) setting(m *module, typ string, e *python.Expr) (string, bool) {
	switch typ {
	case "bool":
		v, ok := boolean(e)
		return strconv.FormatBool(v), ok
	case "string":
		t, ok := o.text(m, e, 0)
		return t.code, ok
	case "int":
		n, ok := o.number(m, e, 0)
		return strconv.Itoa(int(n)), ok || isNone(e)
	case "duration":
		n, ok := o.number(m, e, 0)
		if isNone(e) {
			return "0", true
		}
		return duration(n), ok && n >= 0 && n < 1e9
	case "durations":
		if e.Kind != python.List && e.Kind != python.Tuple {
			return "", false
		}
		var all []string
		for _, x := range e.Args {
			n, ok := o.number(m, x, 0)
			if !ok || n < 0 || n > 1e9 {
				return "", false
			}
			all = append(all, duration(n))
		}
		return "[]time.Duration{" + strings.Join(all, ", ") + "}", true
	case "level":
		name := e.Source[strings.LastIndex(e.Source, ".")+1:]
		if code, ok := logLevelNames[name]; ok {
			return code, true
		}
		n, ok := o.number(m, e, 0)
		return map[float64]string{10: "slog.LevelDebug", 20: "slog.LevelInfo", 30: "slog.LevelWarn", 40: "slog.LevelError"}[n], ok && int(n)%10 == 0 && n >= 10 && n <= 40
	case "server":
		return o.server(m, e)
	}
	return o.storage(m, typ, e, 0)
}

// server translates the server of admission reviews.
func (o *operator) server(m *module, e *python.Expr) (string, bool) {
	if e.Kind != python.Call || len(e.Args) > 0 {
		return "", false
	}
	name, _ := m.kopf(e.X)
	var fields []string
	for _, k := range e.Keywords {
		field := map[string]string{"addr": "Addr", "host": "Host", "path": "Path", "certfile": "CertFile", "pkeyfile": "KeyFile", "cafile": "CAFile", "cadump": "CADump", "password": "KeyPassword"}[k.Name]
		if k.Name == "port" {
			n, ok := o.number(m, k.Value, 0)
			if !ok {
				return "", false
			}
			fields = append(fields, fmt.Sprintf("Port: %d", int(n)))
			continue
		}
		t, ok := o.text(m, k.Value, 0)
		if !ok || field == "" {
			return "", false
		}
		fields = append(fields, field+": "+t.code)
	}
	local := "webhook.Local{" + strings.Join(fields, ", ") + "}"
	switch name {
	case "WebhookServer":
		return local, true
	case "WebhookK3dServer":
		return "webhook.K3d(" + local + ")", true
	case "WebhookMinikubeServer":
		return "webhook.Minikube(" + local + ")", true
	case "WebhookDockerDesktopServer":
		return "webhook.DockerDesktop(" + local + ")", true
	case "WebhookAutoServer":
		return "webhook.Auto{Local: " + local + "}", true
	}
	return "", false
}

// storage translates a storage of progress or of the last-handled configuration.
func (o *operator) storage(m *module, typ string, e *python.Expr, depth int) (string, bool) {
	if e.Kind != python.Call || depth > maxDepth {
		return "", false
	}
	name, _ := m.kopf(e.X)
	if strings.HasPrefix(name, "Multi") {
		return o.multi(m, typ, e, depth)
	}
	args := map[string]text{}
	for _, k := range e.Keywords {
		t, ok := o.text(m, k.Value, 0)
		switch {
		case k.Name == "verbose": // only about the form of records; both are read
		case k.Name == "key" && t.constant && t.is == "last-handled-configuration": // the default
		case !ok:
			return "", false
		default:
			args[k.Name] = t
		}
	}
	if len(e.Args) > 0 || len(args) > 1 {
		return "", false
	}
	var constructor, key, otherwise string
	switch name {
	case "AnnotationsProgressStorage":
		constructor, key, otherwise = "storage.NewAnnotationProgress", "prefix", "kopf.zalando.org"
	case "AnnotationsDiffBaseStorage":
		constructor, key, otherwise = "storage.NewAnnotationBase", "prefix", "kopf.zalando.org"
	case "StatusProgressStorage":
		constructor, key, otherwise = "storage.NewStatusProgress", "name", "kopf"
	case "StatusDiffBaseStorage":
		constructor, key, otherwise = "storage.NewStatusBase", "name", "kopf"
	case "SmartProgressStorage":
		return "storage.DefaultProgress()", len(args) == 0
	default:
		return "", false
	}
	if field, ok := args["field"]; ok && key == "name" && field.constant && len(args) == 1 {
		o.elsewhere = true
		literal := "[]string{" + quoted(strings.Split(field.is, ".")) + "}"
		if name == "StatusDiffBaseStorage" {
			return "&storage.StatusBase{Field: " + literal + "}", true
		}
		return "&storage.StatusProgress{Field: " + literal + `, TouchField: []string{"status", "kopf", "dummy"}}`, true
	}
	value, given := args[key]
	if !given {
		value = constant(otherwise)
	}
	if key == "name" || !value.constant {
		o.elsewhere = true
	} else if o.prefix == "" || o.prefix == value.is {
		o.prefix = value.is
	} else {
		o.elsewhere = true // two prefixes
	}
	return constructor + "(" + value.code + ")", len(args) == 0 || given
}

func (o *operator) multi(m *module, typ string, e *python.Expr, depth int) (string, bool) {
	if len(e.Args) != 1 || e.Args[0].Kind != python.List {
		return "", false
	}
	var all []string
	for _, x := range e.Args[0].Args {
		s, ok := o.storage(m, typ, x, depth+1)
		if !ok {
			return "", false
		}
		all = append(all, s)
	}
	o.elsewhere = true
	return map[string]string{"progress": "storage.MultiProgress(", "base": "storage.MultiBase("}[typ] + strings.Join(all, ", ") + ")", true
}
