package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const sample = "../../testdata/database/"

func TestCheckPrintsAllProblems(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"check", sample + "operator.yaml"}, &out, &out); err != nil || !strings.Contains(out.String(), "is correct") {
		t.Errorf("got %v, %s", err, &out)
	}
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := os.WriteFile(file, []byte("kind: Operatr\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := run(t.Context(), []string{"check", file}, &out, &out); err == nil || strings.Count(out.String(), file+":1: ") != 4 {
		t.Errorf("got %v, %s", err, &out)
	}
}

func TestCheckPrintsWarningsOfACorrectFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "operator.yaml")
	text := "apiVersion: gopf.dev/v1\nkind: Operator\nmetadata: {name: x}\nresources:\n  - {resource: example.com/v1/things, where: {cel: 'false'}, handlers: [{id: h, on: [create], cel: 'null'}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run(t.Context(), []string{"check", file}, &out, &out)
	if err != nil || !strings.HasPrefix(out.String(), file+":5: warning: where.cel is false") || !strings.HasSuffix(out.String(), "is correct.\n") {
		t.Errorf("got %v, %s", err, &out)
	}
}

func TestCallPrintsTheOutput(t *testing.T) {
	var out, log strings.Builder
	err := run(t.Context(), []string{"call", "provision", "-f", sample + "db.yaml", "--operator=" + sample + "operator.yaml"}, &out, &log)
	if err != nil || !strings.Contains(out.String(), `"phase": "Ready"`) || !strings.Contains(log.String(), "provisioning") {
		t.Errorf("got %v, %s, %s", err, &out, &log)
	}
}

func TestMistakesInTheCommandLineAreErrors(t *testing.T) {
	for _, args := range [][]string{{}, {"none"}, {"check"}, {"call", "x"}, {"call", "x", "-f"}, {"test"}, {"test", "x", "--none"}} {
		if err := run(t.Context(), args, os.Stderr, os.Stderr); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	for _, args := range [][]string{{}, {"-n", "x"}} {
		if _, _, _, err := serveArgs(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	for _, args := range [][]string{{}, {"--fqdn"}, {"--fqdn", "a", "--version=b"}} {
		if _, _, err := side8Args(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
}

func TestFlagsAreSeparated(t *testing.T) {
	file, flags, install, err := serveArgs([]string{"o.yaml", "-n", "x", "--install", "-v"})
	if err != nil || file != "o.yaml" || !install || !slices.Equal(flags, []string{"-n", "x", "-v"}) {
		t.Errorf("got %s, %v, %v, %v", file, flags, install, err)
	}
	o, flags, err := side8Args([]string{"--fqdn", "a", "--version=b", "--resource", "c", "--log-level", "debug", "--dev"})
	if err != nil || o.Group+o.Version+o.Resource+o.Apply != "abc./apply" || !slices.Equal(flags, []string{"--dev", "--verbose", "--all-namespaces"}) {
		t.Errorf("got %v, %v, %v", o, flags, err)
	}
	if _, flags, _ = side8Args([]string{"--fqdn=a", "--version=b", "--resource=c", "-n", "x"}); !slices.Equal(flags, []string{"-n", "x"}) {
		t.Errorf("got %v", flags)
	}
}

func TestFlagsOfMetacontrollerAreAccepted(t *testing.T) {
	o, flags, ignored, err := metacontrollerArgs([]string{
		"--allow-kinds", "pods,*.example.com", "--target-label-selector=a=b", "--workers", "7", "--discovery-interval=20s", "--client-go-qps=5",
		"--leader-election", "--zap-devel", "-v",
	})
	if err != nil || !slices.Equal(o.AllowKinds, []string{"pods", "*.example.com"}) || o.Target.String() != "a=b" || o.Workers != 7 || o.Discovery.Seconds() != 20 {
		t.Errorf("got %v, %v", o, err)
	}
	if !slices.Equal(flags, []string{"--election=lease", "-v", "--all-namespaces"}) || !slices.Equal(ignored, []string{"--client-go-qps", "--zap-devel"}) {
		t.Errorf("got %v, %v", flags, ignored)
	}
	for _, args := range [][]string{
		{"--workers"}, {"--workers=0"}, {"--workers", "x"}, {"--discovery-interval=1"}, {"--target-label-selector", "a=("}, {"--apply-strategy=both"},
	} {
		if _, _, _, err := metacontrollerArgs(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: got %v", args, err)
		}
	}
}

func TestAChangeOfAFileIsNoticed(t *testing.T) {
	dir := t.TempDir()
	before := fingerprint(dir)
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	after := changed(t.Context(), dir, before)
	if after == before || after != fingerprint(dir) {
		t.Error("the change was not noticed")
	}
}
