package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writing tells blocks that write to the cluster.
var writing = regexp.MustCompile(`API\.(Create|Apply|Merge|Delete)|Patch\.(Set|Status|Edit|Label|Annotate|Remove|Un)|Adopt\(`)

// notRun are the pages whose blocks are run by tests of their own.
var notRun = []string{"docs/testing.md", "docs/tutorial.md"}

// TestBlocksThatWriteAreAcceptedByTheAPIServer runs every block that creates or changes
// objects, and manifests: on a cluster in memory, or under "gopf exec" on a real control plane, whose
// API server validates the objects.
//
// A program is made of the blocks, a package of each. Handlers are called with an
// object. Functions that declare handlers, main included, make an operator, which runs
// while an object is created, changed and deleted.
func TestBlocksThatWriteAreAcceptedByTheAPIServer(t *testing.T) {
	if os.Getenv("GOPF_TEST_KUBECONFIG") == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set: run this with bin/gopf exec")
	}
	load := newLoader(t)
	p := newProgram(t, load)
	for _, page := range pages(t) {
		if slices.Contains(notRun, page.path) {
			continue
		}
		known := load.names(t, page)
		for _, b := range page.blocks {
			if b.language == "yaml" && strings.HasPrefix(b.text, "apiVersion: ") {
				p.addManifest(t, page, b)
			}
			if b.language != "go" {
				continue
			}
			code, err := load.parse(page.path, b)
			if err != nil {
				continue // reported by another test
			}
			if writing.MatchString(b.text) && page.path != admissionPage { // reviews write nothing by themselves
				p.add(t, page, b, code, known, asCase)
			}
			known.take(code)
		}
	}
	if len(p.cases) < 20 {
		t.Errorf("only these are found: %v", p.cases)
	}
	p.run(t, os.Environ())
}

// program is a module made of blocks.
type program struct {
	folder   string
	load     *loader
	packages []string
	cases    []string
}

// newProgram returns a program without blocks.
func newProgram(t *testing.T, load *loader) *program {
	t.Helper()
	folder, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{folder: t.TempDir(), load: load}
	p.write(t, "go.mod", "module example.com/blocks\n\ngo 1.26.0\n")
	p.write(t, "go.work", fmt.Sprintf("go 1.26.0\n\nuse (\n\t.\n\t%q\n\t%q\n)\n", folder, filepath.Join(folder, "gopftest")))
	if err := os.CopyFS(p.folder, os.DirFS("testdata/blocks")); err != nil {
		t.Fatal(err)
	}
	return p
}

// run completes the program and runs all cases.
func (p *program) run(t *testing.T, env []string) {
	t.Helper()
	p.finish(t)
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", ".")
	cmd.Dir, cmd.Env = p.folder, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func (p *program) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// packageName names the package of a block after its page and line.
func packageName(page *page, b block) string {
	return regexp.MustCompile(`\W`).ReplaceAllString(fmt.Sprintf("b%d_%s", b.line, page.name()), "_")
}

// addManifest makes a package of a manifest.
func (p *program) addManifest(t *testing.T, page *page, b block) {
	t.Helper()
	name := packageName(page, b)
	p.write(t, name+"/cases.go", fmt.Sprintf("package %s\n\nimport \"example.com/blocks/harness\"\n\n"+
		"func Cases() []harness.Case { return []harness.Case{harness.Manifest(\"manifest\", %q)} }\n", name, b.text))
	p.packages, p.cases = append(p.packages, name), append(p.cases, page.path+" manifest")
}

// add makes a package of a block, with as much of the page's names as it needs. as returns
// how the harness runs a function of the block, or "".
func (p *program) add(t *testing.T, page *page, b block, c *code, k *known, as func(*ast.FuncDecl) string) {
	t.Helper()
	name := packageName(page, b)
	own := map[string]bool{}
	var cases []string
	for _, d := range c.file.Decls {
		for _, n := range declaredNames(d) {
			own[n] = true
		}
		if f, ok := d.(*ast.FuncDecl); ok {
			if text := as(f); text != "" {
				cases = append(cases, text)
				p.cases = append(p.cases, page.path+" "+f.Name.Name)
			}
		}
	}
	if len(cases) == 0 {
		t.Errorf("%s:%d: the test does not know how to run this block", page.path, b.line)
		return
	}
	context := &ast.File{Name: ast.NewIdent("p"), Decls: needed(c.file.Decls, k.without(own))}
	for _, file := range []*ast.File{context, c.file} {
		if file != c.file || c.imports == nil {
			addImports(file, k.imports)
		}
	}
	p.write(t, name+"/context.go", p.print(t, name, context.Decls))
	p.write(t, name+"/block.go", p.print(t, name, c.file.Decls))
	p.write(t, name+"/cases.go", fmt.Sprintf("package %s\n\nimport (\n\t\"example.com/blocks/harness\"\n\t\"gopf.dev/gopf\"\n)\n\nvar _ gopf.Object\n\n"+
		"func Cases() []harness.Case {\n\treturn []harness.Case{\n%s\t}\n}\n", name, strings.Join(cases, "")))
	p.packages = append(p.packages, name)
}

func (p *program) print(t *testing.T, name string, decls []ast.Decl) string {
	t.Helper()
	text := bytes.NewBufferString("package " + name + "\n")
	for _, d := range decls {
		if g, ok := d.(*ast.GenDecl); ok && len(g.Specs) == 0 {
			continue
		}
		text.WriteString("\n")
		if err := printer.Fprint(text, p.load.set, d); err != nil {
			t.Fatal(err)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// finish writes the test that runs all cases, each in a namespace of its own.
func (p *program) finish(t *testing.T) {
	t.Helper()
	var imports, rows string
	for _, name := range p.packages {
		imports += fmt.Sprintf("\t%q\n", "example.com/blocks/"+name)
		rows += fmt.Sprintf("\t\t%q: %s.Cases(),\n", strings.ReplaceAll(name, "_", "-"), name)
	}
	p.write(t, "blocks_test.go", `package blocks

import (
	"fmt"
	"testing"

	"example.com/blocks/harness"
`+imports+`)

func TestBlocks(t *testing.T) {
	cluster := harness.Cluster(t)
	for block, cases := range map[string][]harness.Case{
`+rows+`	} {
		for i, c := range cases {
			t.Run(block+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				namespace := fmt.Sprintf("%s-%d", block, i)
				harness.Namespace(t, cluster, namespace)
				c.Run(t, cluster, namespace)
			})
		}
	}
}
`)
}

// asCase returns how the harness runs a function of a block. Empty means that it is not
// run by itself. Statements, and main without what makes and runs its operator, become
// functions that can be run.
func asCase(f *ast.FuncDecl) string {
	if f.Recv != nil {
		if f.Name.Name == "Register" {
			return fmt.Sprintf("\t\tharness.Operator(%q, \"Website\", instance.Register),\n", f.Name.Name)
		}
		return ""
	}
	var params []string
	for _, field := range f.Type.Params.List {
		for range max(1, len(field.Names)) {
			params = append(params, textOf(field.Type))
		}
	}
	name := f.Name.Name
	switch {
	case name == "main":
		f.Name.Name = "Main"
		kind := adjustMain(f)
		return fmt.Sprintf("\t\tharness.Operator(\"main\", %q, Main),\n", kind)
	case name == "_":
		return asStatements(f)
	case len(params) == 1 && params[0] == "*gopf.Operator":
		return fmt.Sprintf("\t\tharness.Operator(%q, %q, %s),\n", name, kindOf(f), name)
	case len(params) == 1 && strings.HasPrefix(params[0], "*gopf.Resource["):
		return fmt.Sprintf("\t\tharness.Operator(%q, \"Example\", func(op *gopf.Operator) { %s(gopf.For[*Example](op, \"kopf.dev/v1/kopfexamples\")) }),\n", name, name)
	case len(params) != 2:
		return ""
	}
	for _, kind := range []string{"Change", "Tick", "Subject"} {
		if strings.HasPrefix(params[1], "*gopf."+kind+"[") && !strings.Contains(params[1], "batchv1") {
			return fmt.Sprintf("\t\tharness.%s(%q, %s),\n", kind, name, name)
		}
	}
	return ""
}

// kindOf is the kind that a function declares handlers for.
func kindOf(f *ast.FuncDecl) string {
	text := textOf(f.Body)
	for _, kind := range []string{"Website", "Example"} {
		if strings.Contains(text, "gopf.For[*"+kind+"]") {
			return kind
		}
	}
	if strings.Contains(text, `op.Resource("kopfexamples")`) {
		return "Unstructured"
	}
	return "Database"
}

// adjustMain gives main its operator as an argument, and does not let it run it.
func adjustMain(f *ast.FuncDecl) (kind string) {
	kind = kindOf(f)
	f.Type.Params.List = []*ast.Field{{Names: []*ast.Ident{ast.NewIdent("op")}, Type: operatorType()}}
	f.Body.List = slices.DeleteFunc(f.Body.List, func(s ast.Stmt) bool { return textOf(s) == "op := gopf.New()" })
	for i, s := range f.Body.List {
		if textOf(s) == "cli.Main(op)" {
			f.Body.List[i] = &ast.AssignStmt{Lhs: []ast.Expr{ast.NewIdent("_")}, Tok: token.ASSIGN, Rhs: []ast.Expr{in("cli", "Main")}}
		}
	}
	return kind
}

// asStatements makes statements a handler, or a function that declares handlers.
func asStatements(f *ast.FuncDecl) string {
	f.Name.Name = "statements"
	text := textOf(f.Body)
	if strings.Contains(text, "c.API") && !strings.Contains(text, "dbs.") && !strings.Contains(text, "gopf.For") {
		change := &ast.StarExpr{X: &ast.IndexExpr{X: in("gopf", "Change"), Index: ast.NewIdent("*Database")}}
		f.Type.Params.List = []*ast.Field{
			{Names: []*ast.Ident{ast.NewIdent("ctx")}, Type: in("context", "Context")},
			{Names: []*ast.Ident{ast.NewIdent("c")}, Type: change},
		}
		return "\t\tharness.Change(\"statements\", statements),\n"
	}
	f.Type.Params.List = []*ast.Field{
		{Names: []*ast.Ident{ast.NewIdent("op")}, Type: operatorType()},
		{Names: []*ast.Ident{ast.NewIdent("dbs")}, Type: &ast.StarExpr{X: &ast.IndexExpr{X: in("gopf", "Resource"), Index: ast.NewIdent("*Database")}}},
	}
	return "\t\tharness.Operator(\"statements\", \"Database\", func(op *gopf.Operator) { _ = statements(op, gopf.For[*Database](op, \"example.com/v1/databases\")) }),\n"
}

func operatorType() ast.Expr { return &ast.StarExpr{X: in("gopf", "Operator")} }

// in is a name of a package.
func in(pkg, name string) ast.Expr {
	return &ast.SelectorExpr{X: ast.NewIdent(pkg), Sel: ast.NewIdent(name)}
}

// textOf is the source of a part of a block.
func textOf(n any) string {
	var text strings.Builder
	if err := printer.Fprint(&text, token.NewFileSet(), n); err != nil {
		return ""
	}
	return text.String()
}

// needed returns the declarations that others use, directly or not.
func needed(used, available []ast.Decl) []ast.Decl {
	names := map[string]bool{"instance": true} // of a type with methods, if the page has one
	look := func(d ast.Decl) {
		ast.Inspect(d, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	for _, d := range used {
		look(d)
	}
	taken := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for i, d := range available {
			wanted := slices.ContainsFunc(declaredNames(d), func(n string) bool {
				of, _, method := strings.Cut(n, ".")
				return names[n] || method && names[of]
			})
			if wanted && !taken[i] {
				taken[i], grown = true, true
				look(d)
			}
		}
	}
	var decls []ast.Decl
	for _, i := range slices.Sorted(maps.Keys(taken)) {
		decls = append(decls, available[i])
	}
	return decls
}
