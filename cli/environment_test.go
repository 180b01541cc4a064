package cli

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"gopf.dev/gopf"
)

// parse applies flags and variables of the command run to the settings.
func parse(t *testing.T, s *gopf.Settings, env map[string]string, args ...string) (*runFlags, error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	f := &runFlags{}
	cmd := &cobra.Command{Use: "run"}
	f.add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	if err := readEnvironment(cmd, nil); err != nil {
		return nil, err
	}
	if err := f.check(false); err != nil {
		return nil, err
	}
	f.apply(s)
	return f, nil
}

func TestFlagsAndVariablesSetTheSettings(t *testing.T) {
	type env = map[string]string
	cases := map[string]struct {
		code func(*gopf.Settings) // settings made by the program
		env  env
		args []string
		want func(*gopf.Settings)
	}{
		"nothing leaves the program's alone": {
			code: func(s *gopf.Settings) { s.Peering.Priority, s.Peering.Standalone, s.Health.Address = 7, true, ":1" },
			want: func(s *gopf.Settings) { s.Peering.Priority, s.Peering.Standalone, s.Health.Address = 7, true, ":1" },
		},
		"everything": {
			args: []string{"-P", "x", "-p", "5", "-L", "http://:1/x", "--election=lease", "--election-name=l", "--election-namespace=ns",
				"--health=:2", "--metrics=:3", "--pprof", "--strict"},
			want: func(s *gopf.Settings) {
				s.Peering.Name, s.Peering.Mandatory, s.Peering.Priority = "x", true, 5
				s.Health = gopf.HealthSettings{Liveness: "http://:1/x", Address: ":2", Strict: true}
				s.Metrics = gopf.MetricsSettings{Address: ":3", Pprof: "localhost:6060"}
				s.Election.Enabled, s.Election.Name, s.Election.Namespace = true, "l", "ns"
			},
		},
		"all variables": {
			env: env{"GOPF_RUN_PEERING": "x", "GOPF_RUN_PRIORITY": "5", "GOPF_RUN_LIVENESS_ENDPOINT": "http://:1/x", "GOPF_RUN_ELECTION": "lease",
				"GOPF_RUN_ELECTION_NAME": "l", "GOPF_RUN_ELECTION_NAMESPACE": "ns", "GOPF_RUN_HEALTH": ":2", "GOPF_RUN_METRICS": ":3",
				"GOPF_RUN_PPROF": "yes", "GOPF_RUN_STRICT": "ON"},
			want: func(s *gopf.Settings) {
				s.Peering.Name, s.Peering.Mandatory, s.Peering.Priority = "x", true, 5
				s.Health = gopf.HealthSettings{Liveness: "http://:1/x", Address: ":2", Strict: true}
				s.Metrics = gopf.MetricsSettings{Address: ":3", Pprof: "localhost:6060"}
				s.Election.Enabled, s.Election.Name, s.Election.Namespace = true, "l", "ns"
			},
		},
		"Kopf's variables": {
			env: env{"KOPF_RUN_PEERING": "x", "KOPF_RUN_PRIORITY": "-5"},
			want: func(s *gopf.Settings) {
				s.Peering.Name, s.Peering.Mandatory, s.Peering.Priority = "x", true, -5
			},
		},
		"ours before Kopf's": {
			env:  env{"KOPF_RUN_PRIORITY": "1", "GOPF_RUN_PRIORITY": "2"},
			want: func(s *gopf.Settings) { s.Peering.Priority = 2 },
		},
		"an empty one is none": {
			env:  env{"KOPF_RUN_PRIORITY": "1", "GOPF_RUN_PRIORITY": ""},
			want: func(s *gopf.Settings) { s.Peering.Priority = 1 },
		},
		"flags before variables": {
			env:  env{"KOPF_RUN_PRIORITY": "1", "GOPF_RUN_PRIORITY": "2"},
			args: []string{"--priority=3"},
			want: func(s *gopf.Settings) { s.Peering.Priority = 3 },
		},
		"dev before everything": {
			env:  env{"GOPF_RUN_DEV": "y"},
			args: []string{"--priority=3"},
			want: func(s *gopf.Settings) { s.Peering.Priority, s.Execution.ReportLostEdits = 666, true },
		},
		"no dev": {
			env:  env{"GOPF_RUN_DEV": "off"},
			args: []string{"--priority=3"},
			want: func(s *gopf.Settings) { s.Peering.Priority = 3 },
		},
		"standalone although the program wants a peering": {
			code: func(s *gopf.Settings) { s.Peering.Mandatory = true },
			args: []string{"--standalone"},
			want: func(s *gopf.Settings) { s.Peering.Standalone = true },
		},
		"a peering although the program wants none": {
			code: func(s *gopf.Settings) { s.Peering.Standalone = true },
			args: []string{"--peering=x"},
			want: func(s *gopf.Settings) { s.Peering.Name, s.Peering.Mandatory = "x", true },
		},
		"secure endpoints": {
			code: func(s *gopf.Settings) { s.Insight.Secure = true },
			env:  env{"GOPF_RUN_METRICS_SECURE": "yes", "GOPF_RUN_TLS_CERT": "/c"},
			args: []string{"--insight=0.0.0.0:1", "--insight-secure", "--metrics=:3", "--tls-key=/k"},
			want: func(s *gopf.Settings) {
				s.Metrics.Address, s.Metrics.Secure = ":3", true
				s.Insight.Address, s.Insight.Secure = "0.0.0.0:1", true
				s.Endpoints.CertFile, s.Endpoints.KeyFile = "/c", "/k"
			},
		},
		"switched off again": {
			code: func(s *gopf.Settings) {
				s.Peering.Standalone, s.Election.Enabled, s.Health.Strict, s.Health.Address = true, true, true, ":1"
			},
			args: []string{"--standalone=false", "--election=none", "--strict=false", "--health="},
			want: func(*gopf.Settings) {},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, want := gopf.New().Settings, gopf.New().Settings
			if c.code != nil {
				c.code(&got)
			}
			c.want(&want)
			if _, err := parse(t, &got, c.env, c.args...); err != nil {
				t.Fatal(err)
			}
			for _, part := range [][2]any{{want.Peering, got.Peering}, {want.Election, got.Election}, {want.Health, got.Health}, {want.Metrics, got.Metrics}, {want.Execution.ReportLostEdits, got.Execution.ReportLostEdits}} {
				if diff := cmp.Diff(part[0], part[1]); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
		})
	}
}

// At a breakpoint, an operator cannot renew its lease.
func TestTheLeaseOutlastsBreakpointsOfADebugger(t *testing.T) {
	t.Setenv("GOPF_DEBUGGER", "1")
	s := gopf.New().Settings
	if _, err := parse(t, &s, nil, "--election=lease"); err != nil {
		t.Fatal(err)
	}
	if e := s.Election; !e.Enabled || e.Duration != 8*time.Hour || e.RenewDeadline >= e.Duration || e.RenewDeadline < 7*time.Hour {
		t.Errorf("got %+v", e)
	}
}

func TestSeveralNamespacesInAVariable(t *testing.T) {
	f, err := parse(t, new(gopf.Settings), map[string]string{"KOPF_RUN_NAMESPACES": " a  b-*,!b-1\tc "})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b-*,!b-1", "c"}, f.scope.namespaces); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestBooleanWordsAreThoseOfKopf(t *testing.T) {
	for want, values := range map[string]string{"true": "1 true t yes y on TRUE Yes", "false": "0 false f no n off OFF"} {
		for value := range strings.FieldsSeq(values) {
			if got, known := boolean(value); got != want || !known {
				t.Errorf("%s: got %q, %v", value, got, known)
			}
		}
	}
	if _, known := boolean("maybe"); known {
		t.Error("maybe was accepted")
	}
}

func TestErrorsNameTheVariable(t *testing.T) {
	cases := map[string]struct {
		env  map[string]string
		args []string
		want []string
	}{
		"boolean":        {map[string]string{"GOPF_RUN_VERBOSE": "maybe"}, []string{"run"}, []string{`the variable GOPF_RUN_VERBOSE is "maybe"; use 1 or 0`}},
		"number":         {map[string]string{"KOPF_RUN_PRIORITY": "high"}, []string{"run"}, []string{`the variable KOPF_RUN_PRIORITY is "high": use a whole number`}},
		"duration":       {map[string]string{"KOPF_FREEZE_LIFETIME": "soon"}, []string{"freeze", "-P", "x"}, []string{"the variable KOPF_FREEZE_LIFETIME is \"soon\": use seconds", "use seconds"}},
		"log format":     {map[string]string{"GOPF_RUN_LOG_FORMAT": "xml"}, []string{"run"}, []string{`GOPF_RUN_LOG_FORMAT is "xml"; use plain, full or json`}},
		"election":       {map[string]string{"GOPF_RUN_ELECTION": "poll"}, []string{"run"}, []string{`GOPF_RUN_ELECTION is "poll"; use lease or none`}},
		"scope":          {map[string]string{"KOPF_RUN_CLUSTERWIDE": "1"}, []string{"run", "-n", "a"}, []string{"KOPF_RUN_CLUSTERWIDE and --namespace exclude each other"}},
		"old scope":      {map[string]string{"KOPF_RUN_NAMESPACE": "a"}, []string{"run", "-A"}, []string{"--all-namespaces and KOPF_RUN_NAMESPACE exclude each other"}},
		"peering":        {map[string]string{"KOPF_RUN_PEERING": "x"}, []string{"run", "--standalone"}, []string{"--standalone and KOPF_RUN_PEERING exclude each other"}},
		"modules":        {map[string]string{"KOPF_RUN_MODULES": "a b"}, []string{"run"}, []string{"KOPF_RUN_MODULES is not supported", "gopf run PKG"}},
		"profiles":       {map[string]string{"GOPF_RUN_PPROF": "here"}, []string{"run"}, []string{`GOPF_RUN_PPROF: serve profiles at "here"`}},
		"probes":         {map[string]string{"GOPF_RUN_LIVENESS_ENDPOINT": "localhost:80"}, []string{"run"}, []string{`GOPF_RUN_LIVENESS_ENDPOINT: serve the probes at "localhost:80"`, "http://0.0.0.0:8080/healthz"}},
		"health":         {nil, []string{"run", "--health=8080"}, []string{`--health: serve health at "8080": missing port in address; use something like :8080`}},
		"metrics":        {nil, []string{"run", "--metrics=:http"}, []string{`--metrics: serve metrics at ":http"`}},
		"freezing scope": {map[string]string{"GOPF_FREEZE_NAMESPACES": "a"}, []string{"freeze", "-A", "-P", "x", "-t", "1"}, []string{"--all-namespaces and GOPF_FREEZE_NAMESPACES exclude"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(c.env)) {
				t.Setenv(name, c.env[name])
			}
			got := call(t, c.args...)
			if got.code != 2 || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("got exit code %d and %q, want 2 and one line", got.code, got.stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("got %q, want %q", got.stderr, want)
				}
			}
		})
	}
}

func TestTheLegacyVariableAddsANamespace(t *testing.T) {
	t.Setenv("KOPF_RUN_NAMESPACE", "legacy")
	if got := call(t, "run"); strings.Contains(got.stderr, "Neither") || got.code != 1 {
		t.Errorf("got %d and %q", got.code, got.stderr)
	}
}

func TestLifetimesAreInSecondsOrHaveUnits(t *testing.T) {
	for value, want := range map[string]time.Duration{"60": time.Minute, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "0": 0, "-1": 0, "1ms": 0, "x": 0, "": 0} {
		var l lifetime
		if err := l.Set(value); time.Duration(l) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %v and %v, want %v", value, time.Duration(l), err, want)
		}
	}
}

func TestMisspelledVariablesAreLogged(t *testing.T) {
	cmd := &cobra.Command{Use: "run"}
	new(runFlags).add(cmd)
	got := unknownVariables(cmd, []string{
		"GOPF_RUN_NAMESPACES=a", "GOPF_RUN_NAMESPACE=a", "GOPF_RUN_LOGFORMAT=json", "GOPF_RUN_EMPTY=",
		"GOPF_FREEZE_FOO=1", "KOPF_RUN_FOO=1", "GOPF_TEST_KUBECONFIG=/x", "HOME=/",
	})
	if want := []string{"GOPF_RUN_LOGFORMAT", "GOPF_RUN_NAMESPACE"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv("GOPF_RUN_NAMESPACE", "a")
	if got := call(t, "run", "-A", "--quiet"); !strings.Contains(got.stderr, "variable=GOPF_RUN_NAMESPACE") {
		t.Errorf("got %q", got.stderr)
	}
}
