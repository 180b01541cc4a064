package docs

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const admissionPage = "docs/admission.md"

// reviewing finds the ids of admission handlers in a block.
var reviewing = regexp.MustCompile(`\.(?:Validate|Mutate)\("([^"]+)"`)

// TestAdmissionHandlersOfThePageReviewRequests runs each block that declares admission
// handlers as an operator on a cluster in memory.
func TestAdmissionHandlersOfThePageReviewRequests(t *testing.T) {
	load := newLoader(t)
	p, page := newProgram(t, load), readPage(t, admissionPage)
	known := load.names(t, page)
	for _, b := range page.blocks {
		if b.language != "go" {
			continue
		}
		code, err := load.parse(page.path, b)
		if err != nil {
			continue // reported by another test
		}
		if reviewing.MatchString(b.text) {
			p.add(t, page, b, code, known, asReviews)
		}
		known.take(code)
	}
	if len(p.cases) < 3 {
		t.Errorf("only these are found: %v", p.cases)
	}
	p.run(t, slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOPF_TEST_KUBECONFIG=") }))
}

// asReviews returns how the harness runs a function that declares admission handlers, or
// one that reviews the scale subresource.
func asReviews(f *ast.FuncDecl) string {
	if strings.Contains(textOf(f.Type), "*gopf.Review[gopf.Unstructured]") {
		return fmt.Sprintf("\t\tharness.Scale(%q, %s),\n", f.Name.Name, f.Name.Name)
	}
	var ids []string
	for _, found := range reviewing.FindAllStringSubmatch(textOf(f.Body), -1) {
		ids = append(ids, found[1])
	}
	if len(ids) == 0 {
		return ""
	}
	if f.Name.Name == "main" {
		f.Name.Name = "Main"
		adjustMain(f)
	}
	return fmt.Sprintf("\t\tharness.Reviews(%q, %#v, %s),\n", f.Name.Name, ids, f.Name.Name)
}
