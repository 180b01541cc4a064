package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// goPackage describes a package with handlers.
type goPackage struct {
	ImportPath, Name, Dir string
	GoFiles, CgoFiles     []string
	Match                 []string // patterns that matched it
	Deps                  []string // import paths of all packages that it needs
	Error                 *struct{ Pos, Err string }

	given    string          // the name that the user gave
	files    bool            // build only GoFiles, not the whole folder
	main     bool            // has func main
	register *token.Position // position of Register; may be nil
	problem  string          // why Register cannot be called, if the syntax shows it
}

// place is the input for the go command to find packages.
type place struct {
	dir      string            // working directory, which selects the module
	patterns []string          // arguments
	given    map[string]string // the names that the user gave for them
}

// locate resolves the packages in args: import paths, folders or files. Files of a main
// package are built as that package. Any other file stands for its folder.
func locate(args []string) (place, error) {
	p := place{given: map[string]string{}}
	files := 0
	for _, arg := range args {
		if strings.Contains(arg, "...") {
			return place{}, usagef("the pattern %s matches many packages; name the packages to run", arg)
		}
		info, err := os.Stat(arg)
		local := filepath.IsAbs(arg) || arg == "." || strings.HasPrefix(filepath.ToSlash(arg), "./") || strings.HasPrefix(filepath.ToSlash(arg), "..")
		switch {
		case err != nil && (local || strings.HasSuffix(arg, ".go")):
			return place{}, usagef("%w; name packages by import path, folder or file", err)
		case err != nil: // an import path, which the go command resolves
			p.patterns = append(p.patterns, arg)
			p.given[arg] = arg
			continue
		}
		path, err := filepath.Abs(arg)
		if err != nil {
			return place{}, err
		}
		folder := path
		if !info.IsDir() {
			name, err := packageOf(path)
			if err != nil {
				return place{}, err
			}
			folder = filepath.Dir(path)
			if path = folder; name == "main" {
				path = filepath.Join(folder, info.Name())
				files++
			}
		}
		if p.dir == "" {
			p.dir = folder
		}
		if !slices.Contains(p.patterns, path) {
			p.patterns = append(p.patterns, path)
			p.given[path] = arg
		}
	}
	if files > 0 && (files < len(p.patterns) || slices.ContainsFunc(p.patterns, func(f string) bool { return filepath.Dir(f) != p.dir })) {
		return place{}, usagef("files of a main package run alone; name files of one folder only, and nothing else")
	}
	return p, nil
}

// packageOf returns the name of the package of the file.
func packageOf(path string) (string, error) {
	if !strings.HasSuffix(path, ".go") {
		return "", usagef("%s is not a Go file; name packages by import path, folder or file", path)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
	if err != nil {
		return "", usageError{err}
	}
	return file.Name.Name, nil
}

// findPackages resolves the packages by the go command, and inspects them.
func findPackages(ctx context.Context, args []string) (module string, packages []*goPackage, err error) {
	where, err := locate(args)
	if err != nil {
		return "", nil, err
	}
	out, err := goOutput(ctx, where.dir, "env", "GOMOD")
	if err != nil {
		return "", nil, err
	}
	gomod := strings.TrimSpace(string(out))
	if gomod == "" || gomod == os.DevNull {
		return "", nil, usagef("there is no go.mod in %s or above; run 'go mod init' there, or change to the folder of your module", describeFolder(where.dir))
	}
	list := append([]string{"list", "-e", "-json=ImportPath,Name,Dir,GoFiles,CgoFiles,Match,Deps,Error", "--"}, where.patterns...)
	if out, err = goOutput(ctx, where.dir, list...); err != nil {
		return "", nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		p := &goPackage{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return filepath.Dir(gomod), packages, nil
		} else if err != nil {
			return "", nil, fmt.Errorf("decode the output of go list: %w", err)
		}
		if p.Error != nil {
			return "", nil, usagef("%s", p.failure())
		}
		p.files = p.ImportPath == "command-line-arguments"
		switch {
		case p.files:
			p.given = strings.Join(args, " ")
		case len(p.Match) > 0:
			p.given = where.given[p.Match[0]]
		}
		if err := p.inspect(); err != nil {
			return "", nil, err
		}
		packages = append(packages, p)
	}
}

// failure returns the error of the go command in one line, with the file if known.
func (p *goPackage) failure() string {
	text := strings.Join(strings.Fields(p.Error.Err), " ")
	if p.Error.Pos != "" && !strings.Contains(text, p.Error.Pos) {
		return p.Error.Pos + ": " + text
	}
	return text
}

// goOutput returns the output of a go command.
func goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := goCommand(ctx, dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errNoGo
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("go %s: %s", args[0], firstLine(stderr.String(), err))
	}
	return out, nil
}

func describeFolder(dir string) string {
	if dir == "" {
		return "this folder"
	}
	return dir
}

// inspect looks for the functions main and Register in the package.
func (p *goPackage) inspect() error {
	files := token.NewFileSet()
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return usageError{err}
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					p.note(d.Name, d.Type, files)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if values, isValues := spec.(*ast.ValueSpec); isValues && d.Tok == token.VAR {
						for _, name := range values.Names {
							p.note(name, nil, files)
						}
					}
				}
			}
		}
	}
	return nil
}

// note records a function, or a variable that may hold one.
func (p *goPackage) note(name *ast.Ident, signature *ast.FuncType, files *token.FileSet) {
	switch {
	case name.Name == "main" && signature != nil:
		p.main = true
	case name.Name == "Register":
		at := files.Position(name.Pos())
		p.register = &at
		// The compiler checks the types, and reports errors at this position.
		if signature != nil && (signature.Params.NumFields() != 1 || signature.Results.NumFields() > 0 || signature.TypeParams.NumFields() > 0) {
			p.problem = fmt.Sprintf("%s: Register must be func Register(op *gopf.Operator)", at)
		}
	}
}
