package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// gitOutput returns the output of a git command in dir.
func gitOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("the git command is not in PATH")
	}
	if err != nil {
		return nil, fmt.Errorf("git %s: %s", args[0], firstLine(stderr.String(), err))
	}
	return out, nil
}

// mergeBase returns the commit from which HEAD and the revision have diverged. A shallow
// clone may not contain it.
func mergeBase(ctx context.Context, dir, revision string) (string, error) {
	if _, err := gitOutput(ctx, dir, "rev-parse", "--quiet", "--verify", revision+"^{commit}"); err != nil {
		return "", fmt.Errorf("the revision %s is not in this clone; fetch it, or name another with --against", revision)
	}
	out, err := gitOutput(ctx, dir, "merge-base", revision, "HEAD")
	if err != nil {
		shallow, _ := gitOutput(ctx, dir, "rev-parse", "--is-shallow-repository")
		if strings.TrimSpace(string(shallow)) == "true" {
			return "", fmt.Errorf("this clone is shallow and does not contain the merge base with %s; fetch more history, for example with 'git fetch --unshallow'", revision)
		}
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}
