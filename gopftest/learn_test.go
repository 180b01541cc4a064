package gopftest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

// Thing has another name than its kind.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func TestTheTypeMetaIsLearned(t *testing.T) {
	c := NewCluster(t, "kopf.dev/v1/kopfexamples", "example.com/v1/gadgets")
	if got := c.Create(t, &KopfExample{ObjectMeta: metav1.ObjectMeta{Name: "by-name"}}).GetKind(); got != "KopfExample" {
		t.Errorf("by the name of the type: got %q", got)
	}
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(t, "example.com/v1/gadgets")
		op := gopf.New()
		gopf.For[*Thing](op, "example.com/v1/gadgets").OnCreate("c", func(context.Context, *gopf.Change[*Thing]) error { return nil })
		Start(t, op, c)
		thing := &Thing{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
		if got := c.Create(t, thing); got.GetAPIVersion() != "example.com/v1" || !strings.EqualFold(got.GetKind(), "Gadget") {
			t.Errorf("by the declaration: got %s %s", got.GetAPIVersion(), got.GetKind())
		}
		if call := Change(t, c, thing); call.Object.Name != "x" {
			t.Errorf("got %+v", call.Object)
		}
		time.Sleep(time.Second)
	})
}

func TestEachTestCanHaveANamespace(t *testing.T) {
	c := NewCluster(t, "kopf.dev/v1/kopfexamples")
	one, two := c.Namespace(t), c.Namespace(t)
	if one == two || !strings.HasPrefix(one, "t-testeachtestcanhaveanamespace-") {
		t.Errorf("got %q and %q", one, two)
	}
	t.Run(strings.Repeat("Ü long name/", 20), func(t *testing.T) {
		if name := c.Namespace(t); len(name) > 63 {
			t.Errorf("got %q", name)
		}
	})
}

func TestSchemasAreParsedOnce(t *testing.T) {
	version := func() *versionSchema {
		c := NewCluster(t)
		c.Load(t, "testdata/crd.yaml")
		for _, res := range c.kinds.all() {
			if res.custom() && res.versions[0].schema != nil {
				return res.versions[0].schema
			}
		}
		t.Fatal("there is no schema")
		return nil
	}
	if first, second := version(), version(); first != second {
		t.Error("the same schema is parsed twice")
	}
}

func TestOnlyValidDefinitionsAreRemembered(t *testing.T) {
	text, err := os.ReadFile("testdata/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cache := &schemaCache{valid: map[[32]byte]bool{}}
	if cache.isValid(string(text)) {
		t.Error("an unknown definition is valid")
	}
	cache.setValid(string(text))
	if !cache.isValid(string(text)) || cache.isValid(string(text)+" ") {
		t.Error("the definitions are mixed up")
	}
}

func TestAFailedTestPrintsTheLastLines(t *testing.T) {
	l := &lastLines{}
	for i := range 450 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	var out bytes.Buffer
	l.print(&out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 201 || !strings.HasPrefix(lines[0], "(250 earlier log lines") || lines[1] != "line 250" || lines[200] != "line 449" {
		t.Errorf("got %d lines: %q … %q", len(lines), lines[:2], lines[len(lines)-1])
	}
	short := &lastLines{}
	fmt.Fprintln(short, "one")
	out.Reset()
	if short.print(&out); out.String() != "one\n" {
		t.Errorf("got %q", &out)
	}
}

// failedTest is a test that has failed.
type failedTest struct {
	testing.TB
	out bytes.Buffer
	end func()
}

func (f *failedTest) Output() io.Writer { return &f.out }
func (f *failedTest) Failed() bool      { return true }
func (f *failedTest) Cleanup(fn func()) { f.end = fn }

func TestLinesOfLevelDebugAreShownOnlyInVerboseRuns(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		f := &failedTest{TB: t}
		out, level := outputOf(f, verbose)
		log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
		log.Debug("quiet")
		log.Info("loud")
		if strings.Contains(f.out.String(), "loud") != verbose {
			t.Errorf("verbose: %v; before the end: %s", verbose, &f.out)
		}
		if f.end != nil {
			f.end()
		}
		if text := f.out.String(); strings.Contains(text, "quiet") != verbose || !strings.Contains(text, "loud") {
			t.Errorf("verbose: %v; got %s", verbose, text)
		}
	}
}

// On a real cluster, a definition that is deleted with its test breaks the next one.
func TestLoadedDefinitionsStayForTheNextTest(t *testing.T) {
	const definitions, name = "apiextensions.k8s.io/v1/customresourcedefinitions", "jars.testing.gopf.dev"
	var first string
	t.Run("first", func(t *testing.T) {
		c := AnyCluster(t)
		c.Load(t, "testdata/crd.yaml")
		first = c.Namespace(t)
	})
	t.Run("second", func(t *testing.T) {
		c := AnyCluster(t)
		if _, exists := c.Lookup(t, definitions, "", name); exists != c.Real() {
			t.Errorf("the definition exists: %v; real cluster: %v", exists, c.Real())
		}
		c.Load(t, "testdata/crd.yaml")
		if second := c.Namespace(t); second == first {
			t.Errorf("two tests have the namespace %s", second)
		}
	})
}
