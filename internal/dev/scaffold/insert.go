package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Change is a set of files to write.
type Change struct {
	dir     string
	New     map[string][]byte // new files
	Changed string            // the file that gets a line; empty means none
	content []byte
	before  []byte
	Line    string // the line
}

// insert returns the source with a line after a statement. It has the indentation of the
// statement. Everything else stays as it is.
func (f *file) insert(after ast.Stmt, line string) ([]byte, error) {
	at := f.fset.Position(after.End()).Offset
	if n := bytes.IndexByte(f.src[at:], '\n'); n >= 0 {
		rest := bytes.TrimSpace(f.src[at : at+n])
		if len(rest) > 0 && !bytes.HasPrefix(rest, []byte("//")) && !bytes.HasPrefix(rest, []byte("/*")) {
			return nil, fmt.Errorf("%s: there is more code on this line; move it to another line", f.fset.Position(after.End()))
		}
		at += n
	} else {
		return nil, fmt.Errorf("%s: the file ends on this line", f.fset.Position(after.End()))
	}
	newline := "\n"
	if at > 0 && f.src[at-1] == '\r' {
		newline = "\r\n"
		at--
	}
	start := f.fset.Position(after.Pos())
	begin := start.Offset - (start.Column - 1)
	indent := string(f.src[begin:start.Offset])
	if strings.TrimSpace(indent) != "" {
		return nil, fmt.Errorf("%s: there is more code on this line; move it to another line", start)
	}
	return f.with(at, newline+indent+line)
}

// with returns the source with a text at a position, if the result parses.
func (f *file) with(at int, text string) ([]byte, error) {
	out := bytes.Join([][]byte{f.src[:at], []byte(text), f.src[at:]}, nil)
	if _, err := parser.ParseFile(token.NewFileSet(), f.name, out, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("the line does not fit into %s: %w; add it by hand: %s", f.name, err, strings.TrimSpace(text))
	}
	return out, nil
}

// Write writes the files. If one cannot be written, none of them stays.
func (c *Change) Write() (err error) {
	var created []string
	defer func() {
		if err != nil {
			for _, name := range created {
				os.Remove(name)
			}
		}
	}()
	for name, content := range c.New {
		path := filepath.Join(c.dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		created = append(created, path)
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if c.Changed == "" {
		return nil
	}
	return c.replace(filepath.Join(c.dir, c.Changed))
}

// replace replaces the changed file in one step, unless it was changed since it was read.
func (c *Change) replace(path string) error {
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, c.before) {
		return errors.Join(fmt.Errorf("%s was changed in the meantime; run the command again", path), err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".gopf-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(c.content)
	if err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
	return err
}
