package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopf.dev/gopf"
)

// callsVariable names a file to which the operators add a line for each call of
// their handlers.
const callsVariable = "GOPF_E2E_CALLS"

// operators are what this executable can be.
func operators() map[string]*gopf.Operator {
	return map[string]*gopf.Operator{
		// It does what examples/01-minimal does.
		"greeting": operator(func(context.Context) {}),
		// Its handler neither returns nor cares about its context.
		"hanging": operator(func(context.Context) { select {} }),
	}
}

func operator(work func(context.Context)) *gopf.Operator {
	op := gopf.New()
	op.Resource("kopfexamples").OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[gopf.Unstructured]) error {
		if err := record(os.Getenv(callsVariable), c.Object.GetName()); err != nil {
			return gopf.Permanent(err)
		}
		work(ctx)
		c.SetResult(map[string]string{"message": "hello world"})
		return nil
	})
	return op
}

func record(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(file, line); err != nil {
		return err
	}
	return file.Close()
}

// recording is a file for the calls of operators in processes.
type recording struct {
	t    *testing.T
	path string
}

func newRecording(t *testing.T) recording {
	return recording{t, filepath.Join(t.TempDir(), "calls")}
}

func (r recording) env() []string { return []string{callsVariable + "=" + r.path} }

// calls are the names of the objects in the order of the calls.
func (r recording) calls() []string {
	r.t.Helper()
	text, err := os.ReadFile(r.path)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return strings.Fields(string(text))
}
