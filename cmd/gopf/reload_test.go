package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFailedBuildsAreOneLine(t *testing.T) {
	failed := errors.New("exit status 1")
	for out, want := range map[string]string{
		"# example.com/op\n./operator.go:41:2: undefined: foo\n":                                             "operator.go:41:2: undefined: foo",
		"# example.com/op\n./a.go:1:1: syntax error\n./a.go:2:1: syntax error\nsub/b.go:3:1: no\ntoo many\n": "a.go:1:1: syntax error (and 2 more)",
		"go: example.com/x@v1: not found\nmore\n":                                                            "go: example.com/x@v1: not found",
		"": "exit status 1",
	} {
		if got := firstProblem(out, failed); got != want {
			t.Errorf("%q: got %q, want %q", out, got, want)
		}
	}
}

const crashed = `panic: runtime error: index out of range [3]

goroutine 1 [running]:
gopf.dev/gopf.New(...)
	/src/gopf/operator.go:7 +0x1d
main.newOperator()
	/home/me/op/operator.go:16 +0x1d
main.main()
	/home/me/op/main.go:6 +0x13
exit status 2
`

func TestCrashesAreOneLineWithThePlaceInTheUsersCode(t *testing.T) {
	var shown bytes.Buffer
	f := &crashFilter{to: &shown}
	for _, part := range []string{"starting\nhalf of a", " line\n", crashed[:40], crashed[40:]} {
		if _, err := f.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown.String(); got != "starting\nhalf of a line\n" {
		t.Errorf("got the output %q", got)
	}
	if got := f.crashed(); got != crashed {
		t.Errorf("got the trace %q", got)
	}
	if got := summarize(crashed, []string{"/home/me/op"}); got != "operator.go:16: panic: runtime error: index out of range [3]" {
		t.Errorf("got %q", got)
	}
	if got := summarize(crashed, []string{"/elsewhere"}); got != "panic: runtime error: index out of range [3]" {
		t.Errorf("got %q", got)
	}
}

func TestSavedFilesAreFoundAndTemporaryFilesAreNot(t *testing.T) {
	dir, given := t.TempDir(), t.TempDir()
	save := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(filepath.Join(dir, "main.go"), "package main")
	save(filepath.Join(dir, "gone.go"), "package main")
	save(filepath.Join(given, "crd.yaml"), "a: b")
	w := watched{folders: []string{dir}, files: []string{filepath.Join(dir, "go.mod")}, given: []string{given}}
	before := w.look()
	for _, name := range []string{".main.go.swp", "main.go~", "#main.go#", "_x.go", "notes.txt", ".#main.go"} {
		save(filepath.Join(dir, name), "x")
	}
	save(filepath.Join(given, ".crd.yaml.swp"), "x")
	if got := changed(before, w.look()); len(got) > 0 {
		t.Errorf("temporary files are reported: %v", got)
	}
	save(filepath.Join(dir, "main.go"), "package main // changed")
	save(filepath.Join(dir, "new.go"), "package main")
	save(filepath.Join(dir, "go.mod"), "module x")
	save(filepath.Join(given, "crd.yaml"), "a: bc")
	if err := os.Remove(filepath.Join(dir, "gone.go")); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range changed(before, w.look()) {
		names = append(names, filepath.Base(path))
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "crd.yaml go.mod gone.go main.go new.go" {
		t.Errorf("got %s", got)
	}
}

func TestSavesAreReportedOnceAndNotMissedWhenTheSetOfFilesChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "main.go")
	save := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("package main")
	w := watched{folders: []string{dir}}
	sets, out := make(chan watched), make(chan []string)
	go watch(t.Context(), w, w.look(), sets, out)
	next := func() []string {
		select {
		case paths := <-out:
			return paths
		case <-time.After(30 * time.Second):
			t.Fatal("a save was missed")
			return nil
		}
	}
	save("package main // 1")
	if got := next(); len(got) != 1 || got[0] != path {
		t.Errorf("got %v", got)
	}
	save("package main // twenty-two")
	sets <- watched{folders: []string{dir, t.TempDir()}}
	if got := next(); len(got) != 1 || got[0] != path {
		t.Errorf("after a new set of files: got %v", got)
	}
}

func TestPollingCostsLittle(t *testing.T) {
	for look, want := range map[time.Duration]time.Duration{
		50 * time.Microsecond: 150 * time.Millisecond, 200 * time.Microsecond: 200 * time.Millisecond, time.Second: 400 * time.Millisecond,
	} {
		if got := pollAfter(look); got != want {
			t.Errorf("after a look of %v: got %v, want %v", look, got, want)
		}
	}
}

func TestOutputIsKeptWhileAShellHasTheTerminal(t *testing.T) {
	var shown bytes.Buffer
	g := &gate{}
	w := g.to(&shown)
	for _, step := range []func(){
		func() { _, _ = w.Write([]byte("a")) },
		g.close,
		func() { _, _ = w.Write([]byte("b")) },
		func() { _, _ = w.Write(make([]byte, maxHeld)) },
	} {
		step()
	}
	if shown.String() != "a" {
		t.Errorf("got %q while the shell runs", shown.String())
	}
	g.open(&shown)
	_, _ = w.Write([]byte("c"))
	if got := shown.String(); got != "ab(more output of the operator was dropped)\nc" {
		t.Errorf("got %q", got)
	}
}

// Time is virtual: the limits are exact.
func TestASaveIsReportedAfterAShortSilence(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "operator.go")
	synctest.Test(t, func(t *testing.T) {
		set := watched{folders: []string{dir}}
		changes := make(chan []string)
		go watch(t.Context(), set, set.look(), make(chan watched), changes)
		began := time.Now()
		if err := os.WriteFile(path, []byte("package main\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := <-changes
		if took, want := time.Since(began), pollInterval+silence; took != want || !slices.Equal(got, []string{path}) {
			t.Errorf("got %v after %v, want the file after %v", got, took, want)
		}
	})
}

func TestFilesOfOtherModulesHaveTheirOwnInterval(t *testing.T) {
	near, far := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		files := poller{set: watched{folders: []string{near}, far: []string{far}}}
		before, _ := files.look()
		files.next = files.next.Add(time.Second) // as if many files took long to look at
		for _, dir := range []string{near, far} {
			if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		now, pause := files.look()
		if got := changed(before, now); !slices.Equal(got, []string{filepath.Join(near, "a.go")}) || pause != pollInterval {
			t.Errorf("before the interval of other modules: got %v, and the next look after %v", got, pause)
		}
		time.Sleep(time.Second + pollInterval)
		if now, _ = files.look(); len(changed(before, now)) != 2 {
			t.Errorf("after the interval of other modules: got %v", changed(before, now))
		}
	})
}
