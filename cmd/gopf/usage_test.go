package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadInputGetsOneClearLine(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("kind: ConfigMap\n---\n{"), 0o600); err != nil {
		t.Fatal(err)
	}
	const operator, library = "testdata/operator", "testdata/library"
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown command":        {[]string{"devel"}, 2, `unknown command "devel" for "gopf"`},
		"unknown flag":           {[]string{"dev", operator, "--verbos"}, 2, "unknown flag: --verbos; see gopf dev --help"},
		"no path":                {[]string{"dev"}, 2, "PATH is missing: give the folder of the operator's main package"},
		"no path but arguments":  {[]string{"dev", "--", "run"}, 2, "PATH is missing"},
		"arguments without dash": {[]string{"dev", operator, "run"}, 2, `unexpected argument "run": the operator's own arguments go after --`},
		"missing path":           {[]string{"dev", dir + "/none"}, 2, "none: no such file or directory: give the folder"},
		"a file":                 {[]string{"dev", operator + "/main.go"}, 2, "is not a folder"},
		"no Go files":            {[]string{"dev", "testdata"}, 2, "there are no Go files in testdata"},
		"no module":              {[]string{"dev", dir}, 2, "is not a Go package: "},
		"no main package":        {[]string{"dev", library}, 2, "is package library, not a main package"},
		"missing manifest":       {[]string{"dev", operator, "--apply", dir + "/none"}, 2, "--apply: stat " + dir + "/none: no such file"},
		"malformed manifest":     {[]string{"dev", operator, "--apply", broken}, 1, "--apply: " + broken + ", document 1: it is not a Kubernetes object"},
		"missing kubeconfig":     {[]string{"dev", operator, "--kubeconfig", dir + "/none"}, 2, "--kubeconfig: stat " + dir + "/none: no such file"},
		"malformed kubeconfig":   {[]string{"dev", operator, "--kubeconfig", broken, "--apply", "testdata/manifests.yaml"}, 1, "the kubeconfig " + broken + " cannot be read"},
		"two clusters":           {[]string{"dev", operator, "--kubeconfig", broken, "--data", dir}, 2, "--data and --kubeconfig exclude each other"},
		"exec without command":   {[]string{"exec"}, 2, "give the command after --"},
		"exec of nothing":        {[]string{"exec", "--", "no-such-command"}, 2, "no-such-command"},
		"version with argument":  {[]string{"version", "x"}, 2, "gopf version --help"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(&interrupt{first: make(chan struct{})}, c.args, &stdout, &stderr)
			got := stderr.String()
			if code != c.code || !strings.Contains(got, c.want) {
				t.Errorf("got exit code %d and %q, want %d and %q", code, got, c.code, c.want)
			}
			if !strings.HasPrefix(got, "gopf: ") || strings.Count(got, "\n") != 1 {
				t.Errorf("got %q, want one line", got)
			}
			if stdout.Len() > 0 {
				t.Errorf("got %q on stdout", stdout.String())
			}
		})
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"dev", "--help"}, {"help", "dev"}} {
		var stdout, stderr bytes.Buffer
		if code := run(&interrupt{first: make(chan struct{})}, args, &stdout, &stderr); code != 0 {
			t.Errorf("got exit code %d", code)
		}
		for _, want := range []string{"Examples:\n  gopf dev ./examples/01-minimal", "--apply file", "Ctrl-C"} {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("got %q, want %q", stdout.String(), want)
			}
		}
	}
}
