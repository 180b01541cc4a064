package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/internal/permissions"
)

// uses reports whether the request needs the permission.
func (r request) uses(p permissions.Permission) bool {
	return r.Verb == p.Verb && r.Group == p.Group && r.Resource == p.Resource && (p.Name == "" || p.Name == r.Name)
}

// notUsed returns the permissions that no request has used, except those that only failures
// need, and those of other accounts.
func notUsed(set permissions.Set, requests []request) (unused permissions.Set) {
	for _, p := range set {
		if p.OnlyFailures() || p.Account != permissions.Operator {
			continue
		}
		if !slices.ContainsFunc(requests, func(r request) bool { return r.uses(p) }) {
			unused = append(unused, p)
		}
	}
	return unused
}

// namedTests is the number of tests that the table names for a permission.
const namedTests = 1

// testsOf names the tests that have used a permission.
func testsOf(p permissions.Permission, requests []request) string {
	var tests []string
	for _, r := range requests {
		if r.uses(p) && !slices.Contains(tests, r.Test) {
			tests = append(tests, r.Test)
		}
	}
	switch n := len(tests); {
	case n == 0 && p.OnlyFailures():
		return "(only after failures)"
	case n == 0:
		return "(none)"
	case n > namedTests:
		return fmt.Sprintf("%s and %d more", strings.Join(tests[:namedTests], ", "), n-namedTests)
	}
	return strings.Join(tests, ", ")
}

// uncalled returns the handlers that no test has called. Activities, such as startup
// handlers, and indices are not counted.
func uncalled(handlers []describe.Handler, requests []request) (all []describe.Handler) {
	counted := []string{describe.Change, describe.Event, describe.Daemon, describe.Timer, describe.Validate, describe.Mutate, describe.Reconcile}
	for _, h := range handlers {
		if slices.Contains(counted, h.Family) && !slices.ContainsFunc(requests, func(r request) bool { return r.Handler == h.ID+" at "+h.Where }) {
			all = append(all, h)
		}
	}
	return all
}

// printUncalled names the handlers that no test has called: their requests are not verified.
func (d *deployment) printUncalled(stdout io.Writer, requests []request) (err error) {
	for _, h := range uncalled(d.model.Operator.Handlers, requests) {
		_, failed := fmt.Fprintf(stdout, "not called: no test calls the handler %s at %s, so its requests are not verified\n", h.ID, h.Where)
		err = errors.Join(err, failed)
	}
	return err
}
