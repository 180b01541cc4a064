package manual

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

// TestSearchFindsTheRightPageFirst runs the search of the site, as browsers do, for the
// questions of users.
func TestSearchFindsTheRightPageFirst(t *testing.T) {
	s := readSite(t)
	script, err := os.ReadFile("../theme/static/search.js")
	if err != nil {
		t.Fatal(err)
	}
	vm := goja.New()
	if _, err := vm.RunString(string(script)); err != nil {
		t.Fatal(err)
	}
	index, err := json.Marshal(s.Index())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vm.RunString("var gopfIndex = " + string(index)); err != nil {
		t.Fatal(err)
	}
	search, _ := goja.AssertFunction(vm.Get("gopfSearch"))
	asked := 0
	for question, want := range questions(t) {
		asked++
		result, err := search(goja.Undefined(), vm.Get("gopfIndex"), vm.ToValue(question), vm.ToValue(4))
		if err != nil {
			t.Fatal(err)
		}
		var pages []string
		for _, raw := range result.Export().([]any) {
			pages = append(pages, raw.(map[string]any)["p"].(string))
		}
		if len(pages) == 0 || pages[0] != want {
			t.Errorf("%q finds %v instead of %s", question, pages, want)
		}
	}
	if asked < 50 {
		t.Errorf("only %d questions were asked", asked)
	}
}

func readSite(t *testing.T) *Site {
	t.Helper()
	s, err := Read("../..", "https://example.com/gopf", "dev")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// questions returns the page for each question.
func questions(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/questions.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if question, page, found := strings.Cut(strings.TrimSpace(line), " | "); found {
			list[question] = page
		}
	}
	return list
}
