package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"gopf.dev/gopf"
)

// result is what a call of the command line has done.
type result struct {
	code           int
	stdout, stderr string
}

// call runs an operator without handlers where no cluster is to be found.
func call(t *testing.T, args ...string) result {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), gopf.New(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func TestExitCodesAndStreams(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	cases := map[string]struct {
		args   []string
		code   int
		stdout string // what it contains; nothing if empty
		stderr string // likewise
	}{
		"help":                  {[]string{"--help"}, 0, "run         Serve the cluster until stopped", ""},
		"help of a command":     {[]string{"help", "run"}, 0, "--all-namespaces", ""},
		"version":               {[]string{"version"}, 0, "go1.", ""},
		"nothing to do":         {nil, 2, "", "say what to do"},
		"unknown command":       {[]string{"runn"}, 2, "", `unknown command or argument "runn". See 'cli.test --help'.`},
		"unknown flag":          {[]string{"run", "--verbos"}, 2, "", "unknown flag: --verbos. See 'cli.test run --help'."},
		"unknown short flag":    {[]string{"run", "-x"}, 2, "", "unknown shorthand flag: 'x' in -x. See 'cli.test run --help'."},
		"flag without value":    {[]string{"run", "-n"}, 2, "", "flag needs an argument: 'n' in -n"},
		"flag with wrong value": {[]string{"run", "--verbose=maybe"}, 2, "", `invalid argument "maybe" for "-v, --verbose" flag`},
		"version with argument": {[]string{"version", "x"}, 2, "", "See 'cli.test version --help'."},
		"blank namespace":       {[]string{"run", "-n", " "}, 2, "", "--namespace needs a name or a pattern"},
		"two kinds of scope":    {[]string{"run", "-A", "-n", "a"}, 2, "", "exclude each other"},
		"no cluster":            {[]string{"run", "-A", "-q"}, 1, "", "no kubeconfig and not in a cluster"},
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

func TestWrongDeclarationsAreFailures(t *testing.T) {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), op, []string{"run", "-A"}, &stdout, &stderr); code != 1 {
		t.Errorf("got exit code %d", code)
	}
	for _, want := range []string{"Error: the operator is declared wrongly:", "cli/cli_test.go:", "a handler has no id"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("got %q, want %q", stderr.String(), want)
		}
	}
}

func TestServingEverythingByDefaultIsTold(t *testing.T) {
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
