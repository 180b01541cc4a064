package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuaranteesAreHeldByTestsThatExist looks for the tests that are named in the
// manual, and that every guarantee names some.
func TestGuaranteesAreHeldByTestsThatExist(t *testing.T) {
	exist := testsOfTheRepository(t)
	p := readPage(t, "docs/guarantees.md")
	named := regexp.MustCompile("`(Test[A-Z]\\w*)`")
	sections := strings.Split(p.prose, "\n## ")
	for i, section := range sections[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if want := fmt.Sprintf("G%d ", i+1); !strings.HasPrefix(title, want) {
			t.Errorf("the heading %q does not begin with %q", title, want)
		}
		if tests := named.FindAllStringSubmatch(text, -1); len(tests) < 3 {
			t.Errorf("%s: only %d tests are named", title, len(tests))
		}
		for _, part := range []string{"\n**", "\nTests: ", "\nNot promised: "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: there is no %q", title, strings.TrimSpace(part))
			}
		}
	}
	if len(sections) != 14 {
		t.Errorf("there are %d guarantees", len(sections)-1)
	}
	for _, p := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(p.prose, -1) {
			if !exist[m[1]] {
				t.Errorf("%s: there is no test %s", p.path, m[1])
			}
		}
	}
}

// testsOfTheRepository are all test functions, nested modules included.
func testsOfTheRepository(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		for line := range strings.Lines(string(raw)) {
			if name, found := strings.CutPrefix(line, "func Test"); found {
				name, _, _ = strings.Cut(name, "(")
				tests["Test"+name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
