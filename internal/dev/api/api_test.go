package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyTheExportedAPIOfPublicPackagesIsListed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go": `package gopf

// New has a comment.
func New(opts ...Option) *Operator { return nil }

type (
	Option interface {
		hidden()
		Shown(a, b int) error
	}
	Operator struct {
		Settings Settings
		secret   int
		Embedded
		lower
	}
	Pair[K comparable, V any] struct{}
	Alias  = string
	Number int
	hidden struct{ Field int }
)

func (o *Operator) Run() {}
func (p Pair[K, V]) Len() int { return 0 }
func (h hidden) Public() {}
func private() {}

const (
	A Number = 1
	b        = 2
)

var ErrX = errors.New("x")
`,
		"client/client.go":    "package client\n\nfunc Get[T any](name string) (T, error) { var t T; return t, nil }\n",
		"a_test.go":           "package gopf\n\nfunc TestX() {}\n",
		"internal/x/x.go":     "package x\n\nfunc X() {}\n",
		"cmd/gopf/main.go":    "package main\n\nfunc X() {}\n",
		"examples/01/main.go": "package main\n\nfunc X() {}\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := exported(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"pkg gopf, const A Number",
		"pkg gopf, func (o *Operator) Run()",
		"pkg gopf, func (p Pair[K, V]) Len() int",
		"pkg gopf, func New(opts ...Option) *Operator",
		"pkg gopf, type Alias = string",
		"pkg gopf, type Number int",
		"pkg gopf, type Operator struct",
		"pkg gopf, type Operator struct, Settings Settings",
		"pkg gopf, type Operator struct, embeds Embedded",
		"pkg gopf, type Option interface",
		"pkg gopf, type Option interface, Shown(a, b int) error",
		"pkg gopf, type Pair[K comparable, V any] struct",
		"pkg gopf, var ErrX",
		"pkg gopf/client, func Get[T any](name string) (T, error)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAFileThatCannotBeParsedIsAnError(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package gopf\nfunc ("), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := exported(root); err == nil {
		t.Error("no error")
	}
}
