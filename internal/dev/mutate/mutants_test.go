package main

import (
	"slices"
	"strings"
	"testing"
)

func TestMutantsAreSmallMistakes(t *testing.T) {
	cases := map[string]struct {
		code string // of a function f with the results (int, error)
		want []string
	}{
		"a comparison":  {"if a < 5 {}", []string{"a < 5 -> !(a < 5)", "< -> <=", "5 -> 6"}},
		"an equality":   {"if a == b {}", []string{"== -> !="}},
		"logic":         {"b = a && !c", []string{"b = a && !c -> nothing", "&& -> ||"}},
		"arithmetic":    {"b := a - c", []string{"- -> +"}},
		"a loop":        {"for x() {}", []string{"x() -> false && (x())"}},
		"statements":    {"x(); y := 1.5; _ = y; i++", []string{"x() -> nothing", "i++ -> nothing"}},
		"branches":      {"for { switch { case a: break; default: continue } }", []string{"break -> nothing", "continue -> nothing"}},
		"debug lines":   {`log.Debug("x"); log.Info("y")`, []string{`log.Info("y") -> nothing`}},
		"results":       {`return n, nil`, []string{"n, nil -> *new(int), *new(error)"}},
		"no results":    {`return 0, nil`, []string{"0 -> 1"}},
		"a zero struct": {`f := func() (time.Time, T) { return time.Time{}, T{} }`, nil},
		"an empty list": {`f := func() []int { return []int{} }`, []string{"[]int{} -> *new([]int)"}},
		"passed on":     {`return g()`, []string{"g() -> *new(int), *new(error)"}},
		"skipped":       {"x() //mutate:skip it is only faster\ny()", []string{"y() -> nothing"}},
		"formats":       {`x := strconv.FormatFloat(f+1, 'f', -1, 64)`, []string{"+ -> -", "1 -> 2"}},
		"functions":     {`f := func() string { return s }`, []string{"s -> *new(string)"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := mutate("f.go", []byte("package p\nfunc f() (int, error) {\n"+c.code+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found {
				_, change, _ := strings.Cut(m.String(), ": ")
				got = append(got, change)
			}
			slices.Sort(got)
			if slices.Sort(c.want); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAMutantReplacesOnlyItsPart(t *testing.T) {
	source := []byte("package p\n\nvar a = 1 + 2\n")
	found, err := mutate("f.go", source)
	if err != nil || len(found) != 3 {
		t.Fatalf("got %v, %v", found, err)
	}
	if got := string(found[1].apply(source)); got != "package p\n\nvar a = 1 - 2\n" {
		t.Errorf("got %q", got)
	}
	if got := found[1].String(); got != "f.go:3:11: + -> -" {
		t.Errorf("got %q", got)
	}
}

func TestTargetsNameTheirTests(t *testing.T) {
	cases := map[string]target{
		"./diff":              {"./diff", []testPackage{{".", "./diff"}}},
		"./a+./a+./b":         {"./a", []testPackage{{".", "./a"}, {".", "./b"}}},
		".+gopftest:./engine": {".", []testPackage{{"gopftest", "./engine"}}},
	}
	for text, want := range cases {
		if got := parseTarget(text); got.pkg != want.pkg || !slices.Equal(got.tests, want.tests) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestTheRateCountsTestedMutants(t *testing.T) {
	s := score{pkg: "p", killed: 3, survived: 1, unmade: 5, left: 2}
	if got := s.String(); got != "p: killed 3 of 4 mutants (75.0 %); 2 were not tested in time" {
		t.Errorf("got %q", got)
	}
	if got := (score{}).rate(); got != 100 {
		t.Errorf("without mutants: got %v", got)
	}
}

func TestSamplesDependOnTheSeedOnly(t *testing.T) {
	var all []mutant
	for i := range 100 {
		all = append(all, mutant{line: i})
	}
	lines := func(of []mutant) (n []int) {
		for _, m := range of {
			n = append(n, m.line)
		}
		return n
	}
	one, again, other := lines(sample(all, 10, 1, "p")), lines(sample(all, 10, 1, "p")), lines(sample(all, 10, 2, "p"))
	if len(one) != 10 || !slices.Equal(one, again) || slices.Equal(one, other) || !slices.IsSorted(one) {
		t.Errorf("got %v, %v and %v", one, again, other)
	}
	if got := sample(all, 0, 1, "p"); len(got) != 100 {
		t.Errorf("without a limit: got %d", len(got))
	}
}

func TestOnlyMatchingMutantsAreTested(t *testing.T) {
	all := []mutant{{file: "a.go", line: 1, from: "<", to: "<="}, {file: "a.go", line: 12, from: "<", to: "<="}, {file: "b.go", line: 1, from: "0", to: "1"}}
	for expression, want := range map[string]int{"": 3, `a\.go:`: 2, `a\.go:1:`: 1, `0 -> 1`: 1, "c": 0} {
		if got, err := matching(slices.Clone(all), expression); err != nil || len(got) != want {
			t.Errorf("%q: got %v, error %v", expression, got, err)
		}
	}
	if _, err := matching(all, "("); err == nil {
		t.Error("an invalid expression is accepted")
	}
}

func TestCoverageFindsTheMutantsThatTestsReach(t *testing.T) {
	const profile = "mode: set\ngopf.dev/gopf/p/f.go:3.10,5.2 1 1\ngopf.dev/gopf/p/f.go:7.1,9.20 2 0\ngopf.dev/gopf/p/f.go:7.1,9.20 2 0\n"
	c := coverage{}
	c.read(profile)
	for at, want := range map[[2]int]bool{{3, 10}: true, {3, 9}: true, {4, 80}: true, {5, 2}: true, {8, 1}: false, {9, 20}: false, {20, 1}: true} {
		if got := c.reaches(mutant{file: "/x/p/f.go", line: at[0], col: at[1]}, "gopf.dev/gopf/p"); got != want {
			t.Errorf("%v: got %v, want %v", at, got, want)
		}
	}
}
