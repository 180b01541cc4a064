package main

import (
	"bytes"
	"errors"
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
	unparsable := filepath.Join(dir, "unparsable")
	for name, text := range map[string]string{"go.mod": "module example.com/x\n\ngo 1.26\n", "x.go": "pack x\n"} {
		if err := errors.Join(os.MkdirAll(unparsable, 0o755), os.WriteFile(filepath.Join(unparsable, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const operator, library, greeter = "testdata/operator", "testdata/library", "testdata/greeter"
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown command":        {[]string{"devel"}, 2, `unknown command "devel" for "gopf" (did you mean "dev"?); see gopf --help`},
		"mistyped exec":          {[]string{"exce", "--", "true"}, 2, `unknown command "exce" for "gopf" (did you mean "exec"?)`},
		"mistyped flag":          {[]string{"dev", operator, "--aply", dir}, 2, "unknown flag: --aply (did you mean --apply?); see gopf dev --help"},
		"unknown flag":           {[]string{"dev", operator, "--verbos"}, 2, "unknown flag: --verbos; see gopf dev --help"},
		"no path":                {[]string{"dev"}, 2, "PATH is missing; name the folder of the operator's main package"},
		"no path but arguments":  {[]string{"dev", "--", "run"}, 2, "PATH is missing"},
		"arguments without dash": {[]string{"dev", operator, "run"}, 2, `unexpected argument "run"; put the operator's own arguments after --`},
		"missing path":           {[]string{"dev", dir + "/none"}, 2, "none: no such file or directory; name the folder"},
		"a file":                 {[]string{"dev", operator + "/main.go"}, 2, "is not a folder"},
		"no Go files":            {[]string{"dev", "testdata"}, 2, "no Go files in "},
		"no module":              {[]string{"dev", dir}, 2, "there is no go.mod in " + dir + " or above"},
		"no main package":        {[]string{"dev", library}, 2, "is package library, not a main package"},
		"missing manifest":       {[]string{"dev", operator, "--apply", dir + "/none"}, 2, "--apply: stat " + dir + "/none: no such file"},
		"malformed manifest":     {[]string{"dev", operator, "--apply", broken}, 1, "--apply: " + broken + ", document 1: not a Kubernetes object"},
		"missing kubeconfig":     {[]string{"dev", operator, "--kubeconfig", dir + "/none"}, 2, "--kubeconfig: stat " + dir + "/none: no such file"},
		"malformed kubeconfig":   {[]string{"dev", operator, "--kubeconfig", broken, "--apply", "testdata/manifests.yaml"}, 1, "the kubeconfig " + broken + " cannot be read"},
		"memory and data":        {[]string{"dev", operator, "--memory", "--data", dir}, 2, "--memory excludes --real, --data and --kubeconfig"},
		"prepare alone":          {[]string{"dev", operator, "--prepare"}, 2, "--prepare is for --memory"},
		"memory and real":        {[]string{"dev", operator, "--memory", "--real"}, 2, "--memory excludes --real"},
		"real and a kubeconfig":  {[]string{"dev", operator, "--real", "--kubeconfig", broken}, 2, "--real and --kubeconfig exclude each other"},
		"no reload but keys":     {[]string{"dev", operator, "--no-reload", "--keys"}, 2, "--no-reload excludes --keys and --debug"},
		"two clusters":           {[]string{"dev", operator, "--kubeconfig", broken, "--data", dir}, 2, "--data and --kubeconfig exclude each other"},
		"types of nothing":       {[]string{"types"}, 2, "requires at least 1 arg"},
		"types of no file":       {[]string{"types", dir + "/none"}, 2, "none: no such file"},
		"types of no definition": {[]string{"types", "../../examples/obj.yaml"}, 1, "write Go types of ../../examples/obj.yaml: there is no CustomResourceDefinition"},
		"add nothing":            {[]string{"add", "handler"}, 2, "name the handler, as in 'gopf add handler create check'"},
		"add an unknown type":    {[]string{"add", "handler", "upsert", "x"}, 2, `"upsert" is not a type of handlers here; use create, update, delete, resume, field, event`},
		"add without a field":    {[]string{"add", "handler", "field", "x"}, 2, "the type field needs --field"},
		"add to no package":      {[]string{"add", "timer", "x", "--dir", dir}, 1, "there are no Go files in " + dir},
		"add to no operator":     {[]string{"add", "timer", "x", "--dir", library}, 1, "no function of this package declares handlers with gopf.For"},
		"add too often":          {[]string{"add", "timer", "x", "--every", "1ns"}, 2, "--every must be at least 1ms"},
		"add to broken code":     {[]string{"add", "kind", "X", "--dir", unparsable}, 1, "correct this first: "},
		"migrate nothing":        {[]string{"migrate", "kopf"}, 2, "name the Python files of the operator"},
		"migrate to nowhere":     {[]string{"migrate", "kopf", broken}, 2, "--out is missing"},
		"migrate no file":        {[]string{"migrate", "kopf", "--out", dir + "/new", dir + "/none.py"}, 2, "none.py: no such file"},
		"migrate no Python":      {[]string{"migrate", "kopf", "--out", dir + "/new", broken}, 1, "line 3: the bracket { is never closed"},
		"exec without command":   {[]string{"exec"}, 2, "the command is missing; put it after --"},
		"exec of nothing":        {[]string{"exec", "--", "no-such-command"}, 2, "no-such-command"},
		"run nothing":            {[]string{"run"}, 2, "PKG is missing; name the packages with handlers, as in 'gopf run ./handlers --all-namespaces'"},
		"run flags first":        {[]string{"run", "-A", operator}, 2, "name the packages before the flags, as in 'gopf run ./handlers -A'"},
		"run no folder":          {[]string{"run", "./none"}, 2, "stat ./none: no such file or directory; name packages by import path"},
		"run no file":            {[]string{"run", "none.go"}, 2, "stat none.go: no such file or directory"},
		"run no Go file":         {[]string{"run", "testdata/manifests.yaml"}, 2, "is not a Go file"},
		"run no such package":    {[]string{"run", "gopf.dev/gopf/none"}, 2, "gopf.dev/gopf/none"},
		"run no Go files":        {[]string{"run", "testdata"}, 2, "no Go files in "},
		"run no module":          {[]string{"run", dir}, 2, "there is no go.mod in " + dir + " or above; run 'go mod init' there"},
		"run no Go at all":       {[]string{"run", unparsable}, 2, "x.go:1:1: expected 'package', found pack"},
		"run a pattern":          {[]string{"run", "./..."}, 2, "the pattern ./... matches many packages; name the packages to run"},
		"run no Register":        {[]string{"run", library}, 2, "testdata/library is package library, not a main package, and has no func Register(op *gopf.Operator)"},
		"run no Register there":  {[]string{"run", greeter, library}, 2, "testdata/library is package library"},
		"run a wrong Register":   {[]string{"run", "testdata/shape"}, 2, "shape.go:7:6: Register must be func Register(op *gopf.Operator)"},
		"run no main":            {[]string{"run", "testdata/nomain"}, 2, "testdata/nomain has neither func main nor func Register(op *gopf.Operator)"},
		"run main with others":   {[]string{"run", greeter, operator}, 2, "testdata/operator is a main package, which runs alone"},
		"run main files":         {[]string{"run", operator + "/main.go", greeter}, 2, "files of a main package run alone"},
		"proxy without folder":   {[]string{"proxy"}, 2, "accepts 1 arg(s), received 0; see gopf proxy --help"},
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
	cases := map[string][]string{
		"dev --help": {"Examples:\n  gopf dev ./examples/01-minimal", "--apply file", "Ctrl-C", "--memory", "a Deployment creates no ReplicaSet", "the previous one keeps running",
			"r reload · t tests on save · d debugger · a apply manifests · k kubectl shell · q quit"},
		"help dev":   {"Examples:\n  gopf dev ./examples/01-minimal", "--apply file", "Ctrl-C"},
		"run --help": {"Examples:\n  gopf run ./handlers", "func Register(op *gopf.Operator)", "--all-namespaces", `"gopf dev" starts one`},
		"help run":   {"Examples:\n  gopf run ./handlers"},
		"run -h":     {"Examples:\n  gopf run ./handlers"},
		"--help":     {"exec ", "Run a command with a local Kubernetes control plane", "--version"},
		"":           {"Available Commands:"},
		"--version":  {"gopf ", " go1."},
		"version":    {"gopf ", " go1."},
	}
	for line, wants := range cases {
		args := strings.Fields(line)
		var stdout, stderr bytes.Buffer
		if code := run(&interrupt{first: make(chan struct{})}, args, &stdout, &stderr); code != 0 {
			t.Errorf("got exit code %d", code)
		}
		for _, want := range wants {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("got %q, want %q", stdout.String(), want)
			}
		}
	}
}
