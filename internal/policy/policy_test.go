package policy

import (
	"strings"
	"testing"
)

func TestIncompleteReservationsAreErrors(t *testing.T) {
	good := Reservation{Name: "x", Prefixes: []string{"a.example.com"}, Account: "op", Resources: []Resource{{"g", "r"}}}
	if _, err := good.YAML(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Reservation){
		"no name": func(r *Reservation) { r.Name = "" }, "no account": func(r *Reservation) { r.Account = "" },
		"no resources": func(r *Reservation) { r.Resources = nil }, "no prefix and no key": func(r *Reservation) { r.Prefixes = nil },
		"an empty key":    func(r *Reservation) { r.Keys = []string{""} },
		"an empty prefix": func(r *Reservation) { r.Prefixes = []string{""} },
	} {
		bad := good
		spoil(&bad)
		if text, err := bad.YAML(); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestNamesCannotBreakOutOfExpressions(t *testing.T) {
	text, err := Reservation{Name: "x", Prefixes: []string{"a"}, Account: `it's \ 'x' || true`, Resources: []Resource{{"g", "r"}}}.YAML()
	if err != nil || !strings.Contains(string(text), `'it\''s \\ \''x\'' || true'`) && !strings.Contains(string(text), `'it\'s \\ \'x\' || true'`) {
		t.Errorf("%v: %s", err, text)
	}
}

func TestParseResource(t *testing.T) {
	for text, want := range map[string]Resource{"pods": {"", "pods"}, "databases.example.com": {"example.com", "databases"}} {
		if got, err := ParseResource(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".example.com", "*", "example.com/v1/databases"} {
		if got, err := ParseResource(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
