package python

import (
	"errors"
	"strings"
	"testing"
)

func TestFunctionsHaveDecoratorsParametersAndBodies(t *testing.T) {
	file, err := Parse(`
import kopf, os as system
from kopf import (on as o,
    TemporaryError)

GROUP = 'example' ".com"

class Shop:
	@kopf.on.create(GROUP, 'v1', "shops", labels={'a': kopf.PRESENT, **more}, retries=3,
	                when=lambda spec, **_: spec.get('x') == 1)  # a comment (
	@other
	async def open(self, spec: dict[str, int], *, name="x", **_) -> None:
		if spec: return 1
		def inner(): pass
		raise TemporaryError(f"no {name!r} {spec["x"]:>10} {{}}", delay=60) from None

print "Python 2", 'is tolerated'
x = [a for a in b]; y: int = 3
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Body[0].Imports; len(got) != 2 || got[1] != (Imported{"os", "", "system"}) {
		t.Errorf("imports: %v", got)
	}
	if got := file.Body[1].Imports; len(got) != 2 || got[0] != (Imported{"kopf", "on", "o"}) {
		t.Errorf("imports: %v", got)
	}
	if s := file.Body[2]; s.Kind != Assign || s.Value.Value != "example.com" {
		t.Errorf("the constant: %+v", s)
	}
	method := file.Body[3].Body[0]
	if method.Kind != Def || method.Name != "open" || len(method.Decorators) != 2 || method.Line != 9 || method.End != 15 || method.BodyLine != 13 {
		t.Fatalf("the method: %+v", method)
	}
	call := method.Decorators[0]
	if name, ok := call.X.Dotted(); !ok || name != "kopf.on.create" || len(call.Args) != 3 || len(call.Keywords) != 3 {
		t.Errorf("the decorator: %+v", call)
	}
	if labels := call.Keywords[0].Value; labels.Kind != Dict || len(labels.Args) != 4 || labels.Args[2] != nil {
		t.Errorf("the labels: %+v", labels)
	}
	if when := call.Keywords[2].Value; when.Kind != Lambda || len(when.Params) != 2 || when.X.Value != "==" {
		t.Errorf("the condition: %+v", when)
	}
	var names []string
	for _, p := range method.Params {
		names = append(names, p.Name)
	}
	if strings.Join(names, " ") != "self spec name **_" {
		t.Errorf("the parameters: %v", names)
	}
	raise := method.Body[2]
	if raise.Kind != Raise || raise.Value.Args[0].Kind != Formatted {
		t.Fatalf("the exception: %+v", raise)
	}
	if parts := raise.Value.Args[0].Args; len(parts) != 5 || parts[1].Value != "name" || parts[3].Kind != Unknown || parts[4].Value != " {}" {
		t.Errorf("the parts of the text: %d", len(parts))
	}
	if s := file.Body[4]; s.Kind != Other {
		t.Errorf("the print statement: %+v", s)
	}
	if s := file.Body[5]; s.Kind != Assign || s.Value.Kind != Unknown || file.Body[6].Value.Value != "3" {
		t.Errorf("the comprehension: %+v", s)
	}
}

func TestLostStructureIsAnErrorWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"open bracket":  {"x = 1\ny = f(1,\n  2\nz = 3\n", "line 2: the bracket ( is never closed"},
		"wrong bracket": {"x = (1]\n", "line 1: the bracket ] closes nothing"},
		"open string":   {"x = 1\ny = 'abc\nz = 3\n", "line 2: the string is never closed"},
		"open text":     {"\n\"\"\"abc\n", "line 2: the string is never closed"},
		"indentation":   {"if x:\n    a\n  b\n", "line 3: the indentation matches no enclosing block"},
		"binary":        {"\x00\x01", "line 1: the file is not UTF-8 text"},
		"nested":        {strings.Repeat("(", 1000), "line 1: too many nested brackets"},
		"f-strings":     {"x = " + strings.Repeat("f'''{", 60), "line 1: the bracket { is never closed"},
		"huge":          {strings.Repeat("x = 1\n", 2<<20), "line 1: the file has more than 8 MiB"},
	} {
		_, err := Parse(c.src)
		if s := (*SyntaxError)(nil); !errors.As(err, &s) || s.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestOddFilesAreRead(t *testing.T) {
	for name, src := range map[string]string{
		"nothing":          "",
		"only comments":    "# nothing\n\n   # here\n",
		"a mark":           "\ufeffx = 1\n",
		"tabs":             "def f():\n\tif a:\n\t\treturn 1\n\treturn 2\n",
		"no last newline":  "def f(): return {'a': 1}",
		"continuation":     "x = 1 + \\\n    2\n",
		"decorators alone": "@a\n@b(\n1)\n",
		"deep operators":   "x = " + strings.Repeat("not ", 5000) + "y\nz = " + strings.Repeat("-", 5000) + "1\n",
		"deep lambdas":     "x = " + strings.Repeat("lambda: ", 5000) + "y\n",
		"tuple parameters": "def f(a, (b, c), d=1, *args): pass\n",
		"match":            "match x:\n    case {'a': 1}:\n        pass\nmatch = 1\n",
		"a walrus":         "if (n := len(a)) > 1: pass\n",
		"windows":          "def f():\r\n    return 1\r\n",
		"odd f-strings":    "x = f'{' \ny = f'{a'\nz = f\"{a:{b}}\" f'{a[\"b\"]}' rf'{a}\\d'\n",
	} {
		if _, err := Parse(src); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every input is read or refused with the line of the mistake.
func FuzzParse(f *testing.F) {
	f.Add("@kopf.on.create('a', labels={'x': f'{y!r}'}, **z)\nasync def f(a, *b, **c): return lambda x: x[1:2]\n")
	f.Add("if a:\n\tfrom . import (b as c)\n\tx: int = 3; y += 4\n")
	f.Add("x = rb'\\'' \"\"\"a\n\"\"\" f\"{a['b']:{c}}\"\n")
	f.Fuzz(func(t *testing.T, src string) {
		file, err := Parse(src)
		if s := (*SyntaxError)(nil); err != nil && (!errors.As(err, &s) || s.Line < 1) {
			t.Errorf("%v", err)
		}
		if err == nil && len(file.Lines) == 0 {
			t.Error("the file has no lines")
		}
	})
}
