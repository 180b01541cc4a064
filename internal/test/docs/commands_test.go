package docs

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

// TestCommandLinesAreUnderstood reads the lines of shell blocks that are for
// make, for operators ("myoperator …", "go run ./examples/…"), and for gopf.
func TestCommandLinesAreUnderstood(t *testing.T) {
	var makefile []byte // of this repository, and of new projects
	for _, name := range []string{"Makefile", "cmd/gopf/template/Makefile.tmpl"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		makefile = append(makefile, text...)
	}
	tool := buildTool(t)
	operators, tools := 0, 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "sh" {
				continue
			}
			for line := range strings.Lines(b.text) {
				words := shellWords(line)
				if len(words) > 3 && words[0] == "go" && words[1] == "run" && words[2] == "./cmd/gopf" {
					words = append([]string{"gopf"}, words[3:]...)
				}
				switch {
				case len(words) == 0:
				case words[0] == "make":
					for _, target := range words[1:] {
						if !strings.Contains(string(makefile), "\n"+target+":") {
							t.Errorf("%s: there is no target %s: %s", p.path, target, line)
						}
					}
				case words[0] == "gopf" && words[1] != "run": // whose flags are the operator's
					tools++
					knows(t, p, tool, words[1:])
				case words[0] == "myoperator":
					operators++
					understood(t, p, words[1:])
				case len(words) > 3 && words[0] == "go" && words[1] == "run" && strings.HasPrefix(words[2], "./examples/"):
					operators++
					understood(t, p, words[3:])
				}
			}
		}
	}
	if operators < 3 || tools < 3 {
		t.Errorf("only %d command lines of operators are found, and %d of gopf", operators, tools)
	}
}

func buildTool(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "gopf")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", tool, "gopf.dev/gopf/cmd/gopf").CombinedOutput(); err != nil {
		t.Fatalf("build gopf: %v: %s", err, out)
	}
	return tool
}

// knows tells whether gopf knows the flags; what comes after "--" is not its.
func knows(t *testing.T, p *page, tool string, args []string) {
	t.Helper()
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	if out, err := exec.CommandContext(t.Context(), tool, append(args, "--help")...).CombinedOutput(); err != nil {
		t.Errorf("%s: gopf %v: %s", p.path, args, out)
	}
}

// understood tells whether an operator knows the flags. With a request for help
// at the end, all others are read and nothing is run.
func understood(t *testing.T, p *page, args []string) {
	t.Helper()
	var complaint strings.Builder
	if code := cli.Run(t.Context(), gopf.New(), append(args, "--help"), io.Discard, &complaint); code != 0 {
		t.Errorf("%s: %v: %s", p.path, args, complaint.String())
	}
}

// shellWords splits a line as a shell does, as far as the manual goes: with
// quotes, comments, and variables before the command.
func shellWords(line string) []string {
	var words []string
	for _, w := range regexp.MustCompile(`'[^']*'|"[^"]*"|#.*|[^\s'"]+`).FindAllString(line, -1) {
		if strings.HasPrefix(w, "#") {
			break
		}
		if len(words) == 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(w) {
			continue
		}
		words = append(words, strings.Trim(w, `'"`))
	}
	return words
}
