package docs

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// usual are the packages that blocks without imports may use.
var usual = map[string]string{
	"cli": "gopf.dev/gopf/cli", "client": "gopf.dev/gopf/client", "diff": "gopf.dev/gopf/diff", "gopf": "gopf.dev/gopf", "gopftest": "gopf.dev/gopf/gopftest",
	"hierarchy": "gopf.dev/gopf/hierarchy", "kind": "gopf.dev/gopf/kind", "manifest": "gopf.dev/gopf/client/manifest", "logs": "gopf.dev/gopf/logs", "storage": "gopf.dev/gopf/storage",
	"storagetest": "gopf.dev/gopf/storage/storagetest", "webhook": "gopf.dev/gopf/webhook",

	"atomic": "sync/atomic", "bytes": "bytes", "cmp": "cmp", "context": "context", "errors": "errors", "flag": "flag", "fmt": "fmt", "http": "net/http",
	"io": "io", "iter": "iter", "json": "encoding/json", "maps": "maps", "os": "os", "regexp": "regexp", "signal": "os/signal", "slices": "slices",
	"slog": "log/slog", "strings": "strings", "sync": "sync", "synctest": "testing/synctest", "syscall": "syscall", "testing": "testing", "time": "time",
	"rand": "math/rand/v2", "sql": "database/sql", "strconv": "strconv", "log": "log", "net": "net", "tls": "crypto/tls", "url": "net/url",

	"apierrors": "k8s.io/apimachinery/pkg/api/errors", "appsv1": "k8s.io/api/apps/v1", "batchv1": "k8s.io/api/batch/v1",
	"corev1": "k8s.io/api/core/v1", "kubernetes": "k8s.io/client-go/kubernetes", "metav1": "k8s.io/apimachinery/pkg/apis/meta/v1",
	"resource": "k8s.io/apimachinery/pkg/api/resource", "rest": "k8s.io/client-go/rest", "clientcmd": "k8s.io/client-go/tools/clientcmd",
	"unstructured": "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "networkingv1": "k8s.io/api/networking/v1", "rbacv1": "k8s.io/api/rbac/v1",
	"types": "k8s.io/apimachinery/pkg/types", "prometheus": "github.com/prometheus/client_golang/prometheus",
}

// loader finds packages in what the compiler has left in its cache, which takes
// a fraction of the time that compiling takes.
type loader struct {
	set      *token.FileSet
	packages types.Importer
}

func newLoader(t *testing.T) *loader {
	t.Helper()
	wanted := map[string]bool{}
	want := func(text string) {
		for name, path := range usual {
			wanted[path] = wanted[path] || strings.Contains(text, name+".")
		}
	}
	names, err := filepath.Glob("testdata/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want(string(raw))
	}
	l := &loader{set: token.NewFileSet()}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "go" || slices.Contains(ownTests, p.path) {
				continue
			}
			want(b.text)
			if c, err := l.parse(p.path, b); err == nil {
				for _, path := range c.imports {
					wanted[path] = true
				}
			}
		}
	}
	maps.DeleteFunc(wanted, func(_ string, used bool) bool { return !used })
	l.packages = importer.ForCompiler(l.set, "gc", exported(t, slices.Sorted(maps.Keys(wanted))))
	return l
}

// exported has the packages compiled, and those that they need. The go command
// runs in the module that has all of them, that for tests included.
func exported(t *testing.T, packages []string) func(path string) (io.ReadCloser, error) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, packages...)...)
	list.Dir = filepath.Join(root, "gopftest")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("there is no package %s", path)
		}
		return os.Open(files[path])
	}
}

// Import makes it an importer.
func (l *loader) Import(path string) (*types.Package, error) { return l.packages.Import(path) }

// addImports lets a file use the usual packages, and those that other blocks of
// the page import.
func addImports(file *ast.File, others map[string]string) {
	available := maps.Clone(usual)
	maps.Copy(available, others)
	used := map[string]bool{}
	for _, d := range file.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && available[x.Name] != "" {
					used[x.Name] = true
				}
			}
			return true
		})
	}
	g := &ast.GenDecl{Tok: token.IMPORT}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		g.Specs = append(g.Specs, &ast.ImportSpec{Name: ast.NewIdent(name), Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(available[name])}})
	}
	file.Decls = append([]ast.Decl{g}, file.Decls...)
}
