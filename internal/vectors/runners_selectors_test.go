package vectors_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// clusterOf reads the resources that the cases of a file share.
func clusterOf(t *testing.T, v vector) (all []kind.Info) {
	type resource struct {
		Group, Version, Plural, Singular, Kind string
		Shortcuts, Categories, Subresources    []string
		Namespaced, Preferred                  bool
		Verbs                                  []string
		Repr                                   string
	}
	for _, r := range decode[[]resource](t, v.File["resources"]) {
		info := kind.Info{
			Group: r.Group, Version: r.Version, Plural: r.Plural, Singular: r.Singular, Kind: r.Kind,
			ShortNames: r.Shortcuts, Categories: r.Categories, Subresources: r.Subresources,
			Namespaced: r.Namespaced, Preferred: r.Preferred, Verbs: r.Verbs,
		}
		if info.String() != r.Repr {
			t.Errorf("a resource is named %q, want %q", info, r.Repr)
		}
		all = append(all, info)
	}
	return all
}

func selector(t *testing.T, v vector) {
	if v.Part == "urls" {
		requestURL(t, v)
		return
	}
	c := decode[selectorCase](t, v.JSON)
	all := clusterOf(t, v)
	s, err := c.selector()
	if (err != nil) != (c.Error != "") {
		t.Fatalf("got the error %v, want %q", err, c.Error)
	}
	if err != nil {
		return
	}
	var check []string
	for _, info := range all {
		if s.Matches(info) {
			check = append(check, info.String())
		}
		// Quirk 6: selectors that name no resource match events.k8s.io in versions
		// that are not preferred. Ours never match Kubernetes events.
		if info.Group == "events.k8s.io" && !info.Preferred && (c.Callable != "" || slices.Contains(c.Args, everything)) {
			named := func(name string) bool { return name == info.String() }
			c.Check, c.Select = slices.DeleteFunc(c.Check, named), slices.DeleteFunc(c.Select, named)
		}
	}
	same(t, "matches", check, c.Check)
	same(t, "selects", names(s.Select(all)), c.Select)
	if s.Specific() != c.IsSpecific {
		t.Errorf("specific: got %v, want %v", s.Specific(), c.IsSpecific)
	}
	if group, narrowed := s.Group(); c.Parsed != nil && (narrowed != (c.Parsed.Group != nil) || narrowed && group != *c.Parsed.Group) {
		t.Errorf("group: got %q, %v, want %+v", group, narrowed, c.Parsed)
	}
}

// everything stands for Kopf's marker of that name in the cases.
const everything = "<EVERYTHING>"

type selectorCase struct {
	Args          []string
	Kwargs        map[string]string
	Callable      string
	IsSpecific    bool `json:"is_specific"`
	Parsed        *struct{ Group *string }
	Check, Select []string
	Error         string
}

// selector makes a selector of Kopf's arguments. Positional ones are a text or
// the parts of one; named ones are calls in Go. Groups and versions that are
// positional win over named ones.
func (c selectorCase) selector() (s kind.Selector, err error) {
	var versioned bool
	named := len(c.Args) > 0 || c.Callable != ""
	switch {
	case len(c.Args) > 0 && c.Callable != "":
		return s, errors.New("a function cannot follow other arguments") // nor in Go, by its signature
	case c.Callable != "":
		s = kind.Matching(c.function)
	case len(c.Args) > 0:
		if s, versioned, err = positional(c.Args); err != nil {
			return s, err
		}
	}
	constructors := map[string]func(string) kind.Selector{
		"kind": kind.Kind, "plural": kind.Plural, "singular": kind.Singular, "shortcut": kind.ShortName, "category": kind.Category,
	}
	for key, value := range c.Kwargs {
		if constructor := constructors[key]; constructor != nil {
			if named {
				return s, errors.New("two names") // no selector in Go can have two
			}
			s, named = constructor(value), true
		}
	}
	if _, grouped := s.Group(); !grouped {
		if group, given := c.Kwargs["group"]; given {
			s = s.InGroup(group)
		}
	}
	if version, given := c.Kwargs["version"]; given && !versioned {
		s = s.InVersion(version)
	}
	return s, s.Err()
}

// positional makes a selector of positional arguments, and reports whether they
// name a version.
func positional(args []string) (s kind.Selector, versioned bool, err error) {
	name := strings.Replace(args[len(args)-1], everything, "*", 1)
	if len(args) == 1 {
		if strings.Contains(name, "/") { // no parts in Kopf, but a name that nothing has
			return kind.Named(name), false, nil
		}
		s, err = kind.Parse(name)
		if parts := strings.Split(name, "."); len(parts) > 1 {
			versioned = s.InVersion(parts[1]).String() == s.String()
		}
		return s, versioned, err
	}
	groups := strings.Join(args[:len(args)-1], "/")
	group, version, both := strings.Cut(groups, "/")
	if group != "" && len(args) < 4 {
		s, err = kind.Parse(groups + "/" + name)
		return s, both || groups == "v1", err
	}
	// A text cannot have the core group in a version other than v1, or in any.
	if s, err = kind.Parse(name); err == nil && len(args) < 4 {
		s = s.InGroup("")
		if both {
			s = s.InVersion(version)
		}
		return s, both, nil
	}
	s, err = kind.Parse(groups + "/" + name)
	return s, both, err
}

// function is the callable of the case. A case describes it in words. If they are
// others than the two that are known here, the function returns true for what
// the case lists, and for what the selector must leave out whatever the function
// returns: Kubernetes events, other groups, and other versions.
func (c selectorCase) function(i kind.Info) bool {
	switch words := strings.ToLower(c.Callable); {
	case strings.Contains(words, "always-true"):
		return true
	case strings.Contains(words, "always-false"):
		return false
	}
	group, grouped := c.Kwargs["group"]
	version, versioned := c.Kwargs["version"]
	return slices.Contains(c.Check, i.String()) || i.Plural == "events" || grouped && i.Group != group || versioned && i.Version != version
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func names(infos []kind.Info) (found []string) {
	for _, i := range infos {
		found = append(found, i.String())
	}
	return found
}

// requestURL sends a request to the resource and compares where it goes.
func requestURL(t *testing.T, v vector) {
	c := decode[struct {
		Resource   string
		Namespaced bool
		Args       struct {
			Server, Namespace, Name, Subresource string
			Params                               map[string]any
		}
		URL, Error string
	}](t, v.JSON)
	target := kube.Target{Namespace: c.Args.Namespace, Name: c.Args.Name, Subresource: c.Args.Subresource}
	for _, info := range clusterOf(t, v) {
		if info.String() == c.Resource {
			info.Namespaced = c.Namespaced
			target.Info = info
		}
	}
	var params []kube.Param
	for name, value := range c.Args.Params {
		params = append(params, kube.Param{Name: name, Value: fmt.Sprint(value)})
	}
	server := c.Args.Server
	if server == "" {
		server = "http://nowhere"
		c.URL = server + c.URL
	}
	var got string
	client, err := kube.NewClient(&rest.Config{Host: server, Transport: transport(func(r *http.Request) *http.Response {
		got = r.URL.String()
		return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}
	})}, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Create(context.Background(), target, []byte("{}"), params...)
	if (err != nil) != (c.Error != "") {
		t.Fatalf("got the error %v, want %q", err, c.Error)
	}
	if err == nil && !sameURL(got, c.URL) {
		t.Errorf("got %q, want %q", got, c.URL)
	}
}

type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// sameURL compares URLs with no regard to the order of their parameters.
func sameURL(a, b string) bool {
	sorted := func(u string) (string, []string) {
		path, query, _ := strings.Cut(u, "?")
		params := strings.Split(query, "&")
		slices.Sort(params)
		return path, params
	}
	pathA, paramsA := sorted(a)
	pathB, paramsB := sorted(b)
	return pathA == pathB && slices.Equal(paramsA, paramsB)
}
