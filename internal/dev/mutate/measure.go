package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// measure tests the mutants of one target, and prints those that survive.
func measure(ctx context.Context, t target, o options) (score, error) {
	s := score{pkg: t.pkg}
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(scratch)
	mutants, importPath, err := find(ctx, t.pkg)
	if err != nil {
		return s, err
	}
	if mutants, err = matching(mutants, o.only); err != nil {
		return s, err
	}
	mutants = sample(mutants, o.sample, o.seed, t.pkg)
	reached, err := covered(ctx, t, importPath, scratch)
	if err != nil {
		return s, err
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	queue := make(chan mutant)
	for i := range max(1, o.parallel) {
		workers.Go(func() {
			folder := filepath.Join(scratch, fmt.Sprint(i))
			for m := range queue {
				v := judge(ctx, t.reaching(m, importPath, reached), m, folder, o.timeout)
				mu.Lock()
				s.count(v, m)
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		queue <- m
	}
	close(queue)
	workers.Wait()
	return s, nil
}

// verdict is the result of testing a mutant.
type verdict int

const (
	survivor verdict = iota
	dead
	unmade
	untested
)

func (s *score) count(v verdict, m mutant) {
	switch v {
	case survivor:
		s.survived++
		fmt.Println("survived", m.short())
	case dead:
		s.killed++
	case unmade:
		s.unmade++
	case untested:
		s.left++
	}
}

// find returns all mutants of a package, and its import path.
func find(ctx context.Context, pkg string) (all []mutant, importPath string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,GoFiles", pkg).Output()
	if err != nil {
		return nil, "", explain("list the package", out, err)
	}
	var listed struct {
		Dir, ImportPath string
		GoFiles         []string
	}
	if err := json.Unmarshal(out, &listed); err != nil {
		return nil, "", err
	}
	for _, name := range listed.GoFiles {
		file := filepath.Join(listed.Dir, name)
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		if strings.Contains(string(source), "\n// Code generated ") {
			continue
		}
		found, err := mutate(file, source)
		if err != nil {
			return nil, "", err
		}
		all = append(all, found...)
	}
	return all, listed.ImportPath, nil
}

// short returns the mutant with its file relative to the current directory.
func (m mutant) short() mutant {
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, m.file); err == nil {
			m.file = short
		}
	}
	return m
}

// matching returns the mutants whose lines in the report match the expression.
func matching(all []mutant, expression string) ([]mutant, error) {
	if expression == "" {
		return all, nil
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(m mutant) bool { return !re.MatchString(m.short().String()) }), nil
}

// sample selects up to n mutants. The same seed and package give the same sample.
func sample(all []mutant, n int, seed uint64, pkg string) []mutant {
	if n == 0 || n >= len(all) {
		return all
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(pkg))
	chosen := rand.New(rand.NewPCG(seed, h.Sum64())).Perm(len(all))[:n]
	slices.Sort(chosen)
	var some []mutant
	for _, i := range chosen {
		some = append(some, all[i])
	}
	return some
}

// covered runs the tests without mutants, which must pass, and returns the coverage of
// each test package.
func covered(ctx context.Context, t target, importPath, scratch string) ([]coverage, error) {
	all := make([]coverage, len(t.tests))
	for i, p := range t.tests {
		profile := filepath.Join(scratch, fmt.Sprintf("profile%d", i))
		cmd := exec.CommandContext(ctx, "go", "-C", p.folder, "test", "-count=1", "-vet=off", "-coverpkg="+importPath, "-coverprofile="+profile, p.pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, explain("test without mutants", out, err)
		}
		text, err := os.ReadFile(profile)
		if err != nil {
			return nil, err
		}
		all[i] = coverage{}
		all[i].read(string(text))
	}
	return all, nil
}

// reaching returns the target with only those tests that run the code of the mutant. reached
// has the coverage of each test package.
func (t target) reaching(m mutant, importPath string, reached []coverage) target {
	var tests []testPackage
	for i, p := range t.tests {
		if reached[i].reaches(m, importPath) {
			tests = append(tests, p)
		}
	}
	t.tests = tests
	return t
}

// judge tests a mutant, or only compiles it if the target has no tests.
func judge(ctx context.Context, t target, m mutant, folder string, timeout time.Duration) verdict {
	overlay, err := m.overlay(folder)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return untested
	case len(t.tests) > 0:
		return try(ctx, t, folder, timeout)
	}
	return build(ctx, t.pkg, overlay)
}

// build compiles a mutant. It returns survivor if the mutant can be tested.
func build(ctx context.Context, pkg, overlay string) verdict {
	err := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-p=1", "-overlay="+overlay, "-o", os.DevNull, pkg).Run()
	switch {
	case ctx.Err() != nil:
		return untested
	case err != nil:
		return unmade
	}
	return survivor
}

// try runs the tests on a mutant. The tests also compile it.
func try(ctx context.Context, t target, folder string, timeout time.Duration) verdict {
	for _, p := range t.tests {
		cmd := exec.CommandContext(ctx, "go", "-C", p.folder, "test", "-count=1", "-vet=off", "-failfast", "-p=1",
			"-timeout="+timeout.String(), "-overlay="+overlayIn(folder), p.pkg)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		switch {
		case ctx.Err() != nil:
			return untested
		case err != nil && notBuilt(out):
			return unmade
		case err != nil:
			return dead
		}
	}
	return survivor
}

// notBuilt reports whether the output of go test says that nothing could be run.
func notBuilt(out []byte) bool {
	return bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]"))
}

func overlayIn(folder string) string { return filepath.Join(folder, "overlay.json") }

// overlay writes the mutant and an overlay file for the compiler.
func (m mutant) overlay(folder string) (path string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(folder, "mutant.go")
	if err := os.WriteFile(mutated, m.apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: mutated}})
	if err != nil {
		return "", err
	}
	path = overlayIn(folder)
	return path, os.WriteFile(path, text, 0o600)
}

func explain(action string, out []byte, err error) error {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		out = append(out, e.Stderr...)
	}
	return fmt.Errorf("%s: %w\n%s", action, err, out)
}
