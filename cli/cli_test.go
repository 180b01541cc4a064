package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"gopf.dev/gopf"
	"gopf.dev/gopf/logs"
)

// result is the outcome of a command line.
type result struct {
	code           int
	stdout, stderr string
}

// call runs an operator without a cluster.
func call(t *testing.T, args ...string) result {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), op, args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func TestExitCodesAndStreams(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	cases := map[string]struct {
		args   []string
		code   int
		stdout string // expected part; empty means no output
		stderr string // expected part; empty means no output
	}{
		"help":                  {[]string{"--help"}, 0, "run         Serve the cluster until stopped", ""},
		"help of a command":     {[]string{"help", "run"}, 0, "--all-namespaces", ""},
		"version":               {[]string{"version"}, 0, "go1.", ""},
		"nothing to do":         {nil, 2, "", "the command is missing"},
		"unknown command":       {[]string{"runn"}, 2, "", `unknown command or argument "runn" (did you mean "run"?). See 'cli.test --help'.`},
		"strange command":       {[]string{"delete"}, 2, "", `unknown command or argument "delete". See 'cli.test --help'.`},
		"a word for a number":   {[]string{"run", "--priority", "high"}, 2, "", `--priority is "high": use a whole number. See 'cli.test run --help'.`},
		"a word for a time":     {[]string{"freeze", "--lifetime", "long"}, 2, "", `--lifetime is "long": use seconds, or a duration with a unit, like 60 or 10m. See`},
		"a word for a switch":   {[]string{"run", "--dev=perhaps"}, 2, "", `--dev is "perhaps": use true or false. See`},
		"unknown flag":          {[]string{"run", "--verbos"}, 2, "", "unknown flag: --verbos (did you mean --verbose?). See 'cli.test run --help'."},
		"unknown short flag":    {[]string{"run", "-x"}, 2, "", "unknown shorthand flag: 'x' in -x. See 'cli.test run --help'."},
		"flag without value":    {[]string{"run", "-n"}, 2, "", "flag needs an argument: 'n' in -n"},
		"flag with wrong value": {[]string{"run", "--verbose=maybe"}, 2, "", `--verbose is "maybe": use true or false`},
		"version with argument": {[]string{"version", "x"}, 2, "", "See 'cli.test version --help'."},
		"blank namespace":       {[]string{"run", "-n", " "}, 2, "", "--namespace needs a name or a pattern"},
		"two kinds of scope":    {[]string{"run", "-A", "-n", "a"}, 2, "", "exclude each other"},
		"version flag":          {[]string{"--version"}, 0, "go1.", ""},
		"help of freeze":        {[]string{"freeze", "--help"}, 0, "GOPF_FREEZE_LOG_FORMAT=json", ""},
		"examples":              {[]string{"run", "--help"}, 0, "cli.test run --namespace 'myapp-*,!myapp-pr-*'", ""},
		"an argument":           {[]string{"run", "x.py"}, 2, "", `unknown command or argument "x.py": the handlers are compiled into this program`},
		"a module":              {[]string{"run", "-m", "x"}, 2, "", "use 'gopf run PKG…'. See 'cli.test run --help'."},
		"no and some peering":   {[]string{"run", "--standalone", "-P", "x"}, 2, "", "--standalone and --peering exclude each other"},
		"nameless peering":      {[]string{"run", "-P", ""}, 2, "", "--peering needs a name"},
		"unknown election":      {[]string{"run", "--election", "poll"}, 2, "", `--election is "poll"; use lease or none`},
		"profiles nowhere":      {[]string{"run", "--pprof=somewhere"}, 2, "", `--pprof: serve profiles at "somewhere"`},
		"an open page":          {[]string{"run", "--insight=0.0.0.0:1"}, 2, "", "or require tokens with --insight-secure"},
		"a page of a program":   {[]string{"run", "--insight=0.0.0.0:1", "--insight-secure=false"}, 2, "", "not a loopback address"},
		"a key alone":           {[]string{"run", "--tls-key=x"}, 2, "", "--tls-cert and --tls-key belong together"},
		"unknown format":        {[]string{"run", "--log-format", "xml"}, 2, "", `--log-format is "xml"; use plain, full or json`},
		"freeze nothing":        {[]string{"freeze", "-A", "-t", "1"}, 2, "", "--peering is missing"},
		"freeze for ever":       {[]string{"freeze", "-A", "-P", "x"}, 2, "", "--lifetime is missing"},
		"freeze for no time":    {[]string{"freeze", "-A", "-P", "x", "-t", "0"}, 2, "", "it must be at least one second"},
		"freeze two scopes":     {[]string{"freeze", "-A", "-n", "a", "-P", "x", "-t", "1"}, 2, "", "exclude each other"},
		"freeze no cluster":     {[]string{"freeze", "-A", "-q", "-P", "x", "-t", "1"}, 1, "", "no kubeconfig and not in a cluster"},
		"resume nothing":        {[]string{"resume", "-A"}, 2, "", "--peering is missing"},
		"resume no cluster":     {[]string{"resume", "-A", "-q", "-P", "x"}, 1, "", "no kubeconfig and not in a cluster"},
		"completion":            {[]string{"completion", "bash"}, 0, "bash completion", ""},
		"completion of nothing": {[]string{"completion"}, 2, "", "the shell is missing"},
		"unknown shell":         {[]string{"completion", "sh"}, 2, "", `unknown command or argument "sh"`},
		"no cluster":            {[]string{"run", "-A", "-q"}, 1, "", "no kubeconfig and not in a cluster"},
		"explain nothing":       {[]string{"explain"}, 2, "", "got 0 arguments; use 'cli.test explain KIND/NAME'"},
		"explain no name":       {[]string{"explain", "databases"}, 2, "", `"databases" names no object; use KIND/NAME`},
		"explain as XML":        {[]string{"explain", "a/b", "-o", "xml"}, 2, "", `--output is "xml"; use text or json`},
		"explain no cluster":    {[]string{"explain", "a/b"}, 1, "", "no kubeconfig and not in a cluster"},
		"pause too shortly":     {[]string{"pause", "a/b", "--for", "0"}, 2, "", "it must be at least one second"},
		"pause one and all":     {[]string{"pause", "a/b", "--all"}, 2, "", "the argument is one resource"},
		"pause all somewhere":   {[]string{"pause", "a", "--all"}, 2, "", "choose the namespaces with --namespace or --all-namespaces"},
		"pause one everywhere":  {[]string{"pause", "a/b", "-A"}, 2, "", "--all-namespaces is for --all and --selector"},
		"continue no cluster":   {[]string{"continue", "a", "-l", "b=c", "-A"}, 1, "", "no kubeconfig and not in a cluster"},
		"retry in two places":   {[]string{"retry", "a/b", "-n", "c", "-n", "d"}, 2, "", "an object is in one namespace"},
		"release nowhere":       {[]string{"release"}, 2, "", "choose the namespaces with --all-namespaces or --namespace"},
		"release two scopes":    {[]string{"release", "-A", "-n", "a"}, 2, "", "exclude each other"},
		"top of pod and URL":    {[]string{"top", "--pod=a", "--url=b"}, 2, "", "--pod and --url exclude each other"},
		"top of a pod":          {[]string{"top", "--pod=a"}, 1, "", "no kubeconfig and not in a cluster"},
		"release no lease":      {[]string{"release", "-A", "--lease=x"}, 2, "", `--lease is "x"; use NAMESPACE/NAME`},
		"help of release":       {[]string{"release", "--help"}, 0, "also from objects that no replica selects", ""},
		"no such kubeconfig":    {[]string{"run", "-A", "-q", "--kubeconfig", none}, 1, "", none + " does not exist"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, c.args...)
			if got.code != c.code {
				t.Errorf("got exit code %d, want %d", got.code, c.code)
			}
			if !strings.Contains(got.stdout, c.stdout) || (got.stdout == "") != (c.stdout == "") {
				t.Errorf("stdout: got %q, want %q", got.stdout, c.stdout)
			}
			if !strings.Contains(got.stderr, c.stderr) || (got.stderr == "") != (c.stderr == "") {
				t.Errorf("stderr: got %q, want %q", got.stderr, c.stderr)
			}
			if c.code != 0 && (!strings.HasPrefix(got.stderr, "Error: ") || strings.Count(got.stderr, "\n") != 1) {
				t.Errorf("stderr: got %q, want one line", got.stderr)
			}
		})
	}
}

func TestAProgramWithTheNameOfAPluginIsCalledByKubectl(t *testing.T) {
	program := os.Args[0]
	t.Cleanup(func() { os.Args[0] = program })
	os.Args[0] = "/usr/local/bin/kubectl-my_databases"
	got := call(t, "explain", "--help")
	for _, want := range []string{"kubectl my-databases explain KIND/NAME", "  kubectl my-databases explain databases/main\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("got %q, want %q", got.stdout, want)
		}
	}
	if got := call(t, "explain"); !strings.Contains(got.stderr, "See 'kubectl my-databases explain --help'") {
		t.Errorf("got %q", got.stderr)
	}
}

func TestInvalidDeclarationsAreFailures(t *testing.T) {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), op, []string{"run", "-A"}, &stdout, &stderr); code != 1 {
		t.Errorf("got exit code %d", code)
	}
	for _, want := range []string{"Error: invalid operator declaration:", "cli/cli_test.go:", "a handler has no id"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("got %q, want %q", stderr.String(), want)
		}
	}
}

func TestFailuresUseTheLogFormat(t *testing.T) {
	got := call(t, "run", "-A", "--log-format=json", "--kubeconfig=/nowhere")
	if got.code != 1 {
		t.Errorf("got exit code %d", got.code)
	}
	lines := strings.Split(strings.TrimSpace(got.stderr), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %q", line)
		}
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "/nowhere does not exist") || !strings.Contains(last, `"severity": "error"`) {
		t.Errorf("the last line is %q", last)
	}
}

func TestAnOperatorWithoutHandlersWarns(t *testing.T) {
	var stdout, stderr bytes.Buffer
	Run(t.Context(), gopf.New(), []string{"run", "-A", "--quiet", "--kubeconfig=/nowhere"}, &stdout, &stderr)
	if !strings.Contains(stderr.String(), "The operator has no handlers") {
		t.Errorf("got %q", stderr.String())
	}
}

func TestServingAllNamespacesByDefaultWarns(t *testing.T) {
	const warning = "Neither --all-namespaces nor --namespace is given: serving the whole cluster."
	for name, args := range map[string][]string{"by default": nil, "also quietly": {"--quiet"}} {
		t.Run(name, func(t *testing.T) {
			if got := call(t, append([]string{"run"}, args...)...); !strings.Contains(got.stderr, warning) {
				t.Errorf("got %q", got.stderr)
			}
		})
	}
	for name, args := range map[string][]string{"everywhere": {"-A"}, "somewhere": {"-n", "a"}} {
		t.Run(name, func(t *testing.T) {
			if got := call(t, append([]string{"run"}, args...)...); strings.Contains(got.stderr, warning) {
				t.Errorf("got %q", got.stderr)
			}
		})
	}
}

func TestCompletionSuggestsValues(t *testing.T) {
	for flag, want := range map[string]string{"--log-format": "plain\nfull\njson\nshort\n", "--election": "lease\nnone\n"} {
		if got := call(t, "__complete", "run", flag, ""); !strings.HasPrefix(got.stdout, want) {
			t.Errorf("%s: got %q, want %q", flag, got.stdout, want)
		}
	}
}

func TestLogOptions(t *testing.T) {
	cases := map[string]struct {
		args     []string
		terminal bool
		want     logs.Options
	}{
		"default":           {nil, false, logs.Options{Format: logs.Full, Level: slog.LevelInfo, Prefix: true, RefKey: "object"}},
		"terminal":          {nil, true, logs.Options{Format: logs.Short, Level: slog.LevelInfo, Prefix: true, RefKey: "object"}},
		"given there":       {[]string{"--log-format=full"}, true, logs.Options{Format: logs.Full, Level: slog.LevelInfo, Prefix: true, RefKey: "object"}},
		"json":              {[]string{"--log-format=json"}, false, logs.Options{Format: logs.JSON, Level: slog.LevelInfo, RefKey: "object"}},
		"json with prefix":  {[]string{"--log-format=json", "--log-prefix"}, false, logs.Options{Format: logs.JSON, Level: slog.LevelInfo, Prefix: true, RefKey: "object"}},
		"no prefix":         {[]string{"--no-log-prefix"}, false, logs.Options{Format: logs.Full, Level: slog.LevelInfo, RefKey: "object"}},
		"the last one wins": {[]string{"--no-log-prefix", "--log-prefix"}, false, logs.Options{Format: logs.Full, Level: slog.LevelInfo, Prefix: true, RefKey: "object"}},
		"key":               {[]string{"--log-refkey=k8s"}, false, logs.Options{Format: logs.Full, Level: slog.LevelInfo, Prefix: true, RefKey: "k8s"}},
		"quiet":             {[]string{"-q"}, false, logs.Options{Format: logs.Full, Level: slog.LevelWarn, Prefix: true, RefKey: "object"}},
		"verbose":           {[]string{"-q", "-v"}, false, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true, RefKey: "object"}},
		"debug":             {[]string{"-d", "-q"}, false, logs.Options{Format: logs.Full, Level: slog.LevelDebug - 4, Prefix: true, RefKey: "object"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var l logFlags
			cmd := &cobra.Command{Use: "run"}
			l.add(cmd)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			got, err := l.options(c.terminal)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v; -want +got\n%s", err, diff)
			}
		})
	}
}

func TestLogFormats(t *testing.T) {
	line := func(format string) string {
		t.Helper()
		got := call(t, "run", "--log-format", format)
		line, _, _ := strings.Cut(got.stderr, "\n")
		return line
	}
	if got := line("plain"); !strings.HasPrefix(got, "Neither ") {
		t.Errorf("plain: got %q", got)
	}
	if got := line("full"); !strings.HasPrefix(got, "[20") || !strings.Contains(got, "[WARNING ] Neither ") {
		t.Errorf("full: got %q", got)
	}
	var object struct{ Message, Severity, Timestamp string }
	if err := json.Unmarshal([]byte(line("JSON")), &object); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(object.Message, "Neither ") || object.Severity != "warn" || object.Timestamp == "" {
		t.Errorf("json: got %+v", object)
	}
}
