package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopf.dev/gopf/serve"
)

var (
	block    = regexp.MustCompile("(?s)```(?:yaml|sh)\n(.*?)```")
	fileName = regexp.MustCompile(`^# ([a-z_.]+\.yaml)\n`)
)

// TestTheFirstOperatorOfTheManualPassesItsTests writes the files of the page into an empty
// folder, as a reader does.
func TestTheFirstOperatorOfTheManualPassesItsTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		name := ""
		if m := fileName.FindStringSubmatch(b[1]); m != nil {
			name = m[1]
		} else if strings.HasPrefix(b[1], "#!/bin/sh\n") {
			name = "provision.sh"
		}
		if name == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b[1]), 0o700); err != nil { //nolint:gosec // the script must be executable
			t.Fatal(err)
		}
	}
	if err := serve.Check(os.DirFS(dir), "operator.yaml", serve.Dir(dir)); err != nil {
		t.Error(err)
	}
	for file, count := range map[string]int{"operator_test.yaml": 4, "more_test.yaml": 1} {
		var out strings.Builder
		err := Run(t.Context(), filepath.Join(dir, file), Options{Out: &out, Update: file == "more_test.yaml"})
		if err != nil || strings.Count(out.String(), "ok ") != count {
			t.Errorf("%s: %v\n%s", file, err, &out)
		}
	}
}
