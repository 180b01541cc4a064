// Package layers tests that the code follows the layers in ARCHITECTURE.md.
package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../../.."
	module = "gopf.dev/gopf"
)

// layer is one row of the table.
type layer struct {
	rank int // position in the table; higher rows have higher ranks
	name string
	pure bool
}

// readTable returns the layer of each package.
func readTable(t *testing.T) map[string]layer {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Layers\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no section Layers")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	layers := map[string]layer{}
	name := regexp.MustCompile("`([^`]+)`")
	rank := 1000
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !regexp.MustCompile(`^ \d`).MatchString(cells[1]) {
			continue
		}
		rank--
		for _, m := range name.FindAllStringSubmatch(cells[2], -1) {
			layers[m[1]] = layer{rank, strings.TrimSpace(cells[1]), strings.Contains(cells[1], "pure")}
		}
	}
	if len(layers) < 10 {
		t.Fatalf("found only %d packages in the table of ARCHITECTURE.md", len(layers))
	}
	return layers
}

// source is a parsed file of production code.
type source struct {
	path string // relative to the root
	pkg  string // as in the table
	file *ast.File
	set  *token.FileSet
}

func (s source) at(n ast.Node) string {
	return s.path + ":" + strconv.Itoa(s.set.Position(n.Pos()).Line)
}

// readSources parses all production code of the module.
func readSources(t *testing.T) []source {
	t.Helper()
	var sources []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(path, "go.mod"))
			if rel != "." && (nested == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "examples" || rel == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if pkg == "." {
			pkg = "gopf"
		}
		sources = append(sources, source{filepath.ToSlash(rel), pkg, file, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// onlyTests lists packages without production code.
var onlyTests = []string{"internal/test/layers", "internal/vectors", "internal/test/e2e"}

func TestImportsGoDownOnly(t *testing.T) {
	layers := readTable(t)
	seen := map[string]bool{}
	for _, s := range readSources(t) {
		if slices.Contains(onlyTests, s.pkg) {
			continue
		}
		own, known := layers[s.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table of ARCHITECTURE.md", s.path, s.pkg)
			continue
		}
		seen[s.pkg] = true
		for _, i := range s.file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			imported := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
			if imported == "" {
				imported = "gopf"
			}
			if other, known := layers[imported]; !known {
				t.Errorf("%s imports %s, which is not in the table", s.at(i), imported)
			} else if other.rank >= own.rank {
				t.Errorf("%s: %s (%s) must not import %s (%s)", s.at(i), s.pkg, own.name, imported, other.name)
			}
		}
	}
	for pkg := range layers {
		if !seen[pkg] {
			t.Errorf("the package %s of the table does not exist", pkg)
		}
	}
}

func TestOnlyTheClientImportsClientGo(t *testing.T) {
	allowed := []string{"internal/kube", "internal/dev/manifests", "internal/test/e2e/kit"} // tests access clusters without our client
	for _, s := range readSources(t) {
		for _, i := range s.file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if strings.HasPrefix(path, "k8s.io/client-go/") && path != "k8s.io/client-go/rest" && !slices.Contains(allowed, s.pkg) {
				t.Errorf("%s: %s must not import %s", s.at(i), s.pkg, path)
			}
		}
	}
}

// The first build of an operator compiles all dependencies. The core types alone take a tenth
// of that time, so only operators that use them may need them.
func TestTheFirstOperatorBuildsWithoutLargePackages(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./examples/01-minimal")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if path == "k8s.io/api/core/v1" || path == "database/sql" {
			t.Errorf("examples/01-minimal depends on %s", path)
		}
	}
}

// The linker keeps all exported methods of all types if a method may be called by a name that
// is only known at run time, as text/template does. The operator is then a sixth larger, and
// linking it is most of the time between a save and the new operator.
func TestTheLinkerDropsUnusedMethods(t *testing.T) {
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-dumpdep", "-o", filepath.Join(t.TempDir(), "operator"), "./examples/01-minimal")
	build.Dir = root
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.1000s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if caller, _, ok := strings.Cut(line, " -> "); ok && strings.HasSuffix(caller, "<ReflectMethod>") {
			t.Fatalf("%s calls methods by names that the linker does not know", caller)
		}
	}
}

// The library has no v1; see ARCHITECTURE.md.
const jsonLibrary = "github.com/go-json-experiment/json"

func TestFewPackagesImportTheJSONLibrary(t *testing.T) {
	allowed := []string{"internal/jsonvalue", "internal/essence", "internal/admission", "internal/unmarshal"}
	for _, s := range readSources(t) {
		for _, i := range s.file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if strings.HasPrefix(path, jsonLibrary) && !slices.Contains(allowed, s.pkg) {
				t.Errorf("%s: %s must not import %s", s.at(i), s.pkg, path)
			}
		}
	}
}

func TestAllModulesUseOneCommitOfTheJSONLibrary(t *testing.T) {
	versions := map[string][]string{}
	for _, module := range []string{".", "gopftest", "bench", "cmd/devcluster", "webhook/ngrok", "otel"} {
		text, err := os.ReadFile(filepath.Join(root, module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == jsonLibrary {
				versions[fields[1]] = append(versions[fields[1]], module)
			}
		}
	}
	if len(versions) != 1 {
		t.Errorf("versions of %s: %v, want one", jsonLibrary, versions)
	}
}

func TestDecisionsArePure(t *testing.T) {
	layers := readTable(t)
	forbidden := map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		"os":   nil, "net": nil, "net/http": nil, // nil means all functions
	}
	for _, s := range readSources(t) {
		if !layers[s.pkg].pure {
			continue
		}
		for _, i := range s.file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if names, found := forbidden[path]; found && names == nil {
				t.Errorf("%s: %s is pure and must not import %s", s.at(i), s.pkg, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: %s is pure and must not start goroutines", s.at(n), s.pkg)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && slices.Contains(forbidden[x.Name], n.Sel.Name) {
					t.Errorf("%s: %s is pure and must not call %s.%s", s.at(n), s.pkg, x.Name, n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestNoPublicTypeIsAnAliasOfAnInternalOne(t *testing.T) {
	for _, s := range readSources(t) {
		if strings.HasPrefix(s.pkg, "internal/") || strings.HasPrefix(s.pkg, "cmd/") {
			continue
		}
		internal := map[string]bool{}
		for _, i := range s.file.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			if strings.HasPrefix(path, module+"/internal/") {
				internal[filepath.Base(path)] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
				return true
			}
			if sel, ok := spec.Type.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && internal[x.Name] {
					t.Errorf("%s: the public type %s is an alias of an internal one", s.at(spec), spec.Name)
				}
			}
			return true
		})
	}
}
