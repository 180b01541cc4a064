package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// compareAPI compares the exported API of each module with that of the previous release.
// Before 1.0, incompatible changes need a new minor version; from 1.0 on, a new major version.
func (r *release) compareAPI(ctx context.Context) error {
	tags, err := git(ctx, r.clone, "tag", "--list", "v*")
	if err != nil {
		return err
	}
	previous := before(strings.Fields(tags), r.version)
	if previous == "" {
		fmt.Fprintln(r.out, "   there is no earlier release")
		return nil
	}
	old := filepath.Join(r.work, "old")
	if _, err := git(ctx, r.clone, "worktree", "add", "--detach", "--quiet", old, previous); err != nil {
		return err
	}
	tool, err := output(exec.CommandContext(ctx, "go", "tool", "-n", "-modfile="+r.tools, "apidiff"))
	if err != nil {
		return err
	}
	for i, folder := range r.modules {
		if strings.HasPrefix(folder, "cmd/") {
			continue // nothing in it can be imported
		}
		module, err := modulePath(filepath.Join(r.clone, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		var exported []string
		for name, tree := range map[string]string{"old": old, "new": r.clone} {
			file := filepath.Join(r.work, fmt.Sprintf("%d-%s.api", i, name))
			write := exec.CommandContext(ctx, tool, "-m", "-w", file, module)
			write.Dir = filepath.Join(tree, filepath.FromSlash(folder))
			if _, err := output(write); err != nil {
				return fmt.Errorf("%s: %w", module, err)
			}
			exported = append(exported, file)
		}
		slices.SortFunc(exported, func(a, b string) int { return -strings.Compare(a, b) }) // the old one first
		changes, err := output(exec.CommandContext(ctx, tool, "-m", "-incompatible", exported[0], exported[1]))
		if err != nil {
			return err
		}
		if changes != "" && !allowsBreaks(previous, r.version) {
			return fmt.Errorf("%s has changes that are not compatible with %s; choose a version that allows them:\n%s", module, previous, changes)
		}
	}
	return nil
}

// before returns the newest release before a version. Empty means that there is none.
func before(tags []string, version string) string {
	found := ""
	for _, tag := range tags {
		if !versionForm.MatchString(tag) || strings.Contains(tag, "-") {
			continue
		}
		if slices.Compare(numbersOf(tag), numbersOf(version)) < 0 && (found == "" || slices.Compare(numbersOf(tag), numbersOf(found)) > 0) {
			found = tag
		}
	}
	return found
}

// allowsBreaks reports whether a version may have incompatible changes since another one.
func allowsBreaks(previous, next string) bool {
	old, now := numbersOf(previous), numbersOf(next)
	if now[0] == 0 {
		return now[1] > old[1]
	}
	return now[0] > old[0]
}

// numbersOf returns the three numbers of a version.
func numbersOf(version string) []int {
	numbers := make([]int, 3)
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "-")
	for i, part := range strings.SplitN(version, ".", 3) {
		_, _ = fmt.Sscanf(part, "%d", &numbers[i]) // the form was checked
	}
	return numbers
}
