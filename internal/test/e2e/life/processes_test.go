package life_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// The variables of operators in processes.
const (
	operatorVariable  = "GOPF_LIFE_OPERATOR"  // which one this executable is
	identityVariable  = "GOPF_LIFE_IDENTITY"  // who it is
	namespaceVariable = "GOPF_LIFE_NAMESPACE" // where its lease is
	durationVariable  = "GOPF_LIFE_DURATION"  // of the lease
	callsVariable     = "GOPF_LIFE_CALLS"     // a file for the calls of its handlers
)

// processes are the operators that this executable can be.
func processes() map[string]func() *gopf.Operator {
	return map[string]func() *gopf.Operator{
		"replica":        replicaProcess,
		"steps":          stepsProcess,
		"broken startup": func() *gopf.Operator { return lifeProcess(gopf.Permanent(errors.New("no disk")), nil) },
		"broken cleanup": func() *gopf.Operator { return lifeProcess(nil, gopf.Permanent(errors.New("no broom"))) },
		"long cleanup":   func() *gopf.Operator { return lifeProcess(nil, gopf.RetryAfter(time.Hour, errors.New("not yet"))) },
	}
}

// replicaProcess is one of several equal operators, whose handlers note what they
// have handled and when they began.
func replicaProcess() *gopf.Operator {
	op := electedProcess()
	x := gopf.For[*Example](op, examples)
	note := func(_ context.Context, c *gopf.Change[*Example]) error {
		began := time.Now()
		time.Sleep(20 * time.Millisecond)
		return noteCall("%s %s %s %d", os.Getenv(identityVariable), c.Object.Name, c.Object.Spec.Field, began.UnixMicro())
	}
	x.OnCreate("create", note)
	x.OnUpdate("update", note)
	return op
}

// stepsProcess is one of several equal operators, whose handler has many
// sub-handlers that follow each other at once.
func stepsProcess() *gopf.Operator {
	op := electedProcess()
	gopf.For[*Example](op, examples).OnCreate("create", func(_ context.Context, c *gopf.Change[*Example]) error {
		for i := range 60 {
			step := fmt.Sprint("step", i)
			c.Sub(step, func(context.Context, *gopf.Change[*Example]) error {
				began := time.Now()
				time.Sleep(50 * time.Millisecond) // many steps are left when the test stops the process
				return noteCall("%s %s %s %d", os.Getenv(identityVariable), c.Object.Name, step, began.UnixMicro())
			})
		}
		return nil
	})
	return op
}

// electedProcess is an operator that takes part in an election.
func electedProcess() *gopf.Operator {
	duration, err := time.ParseDuration(os.Getenv(durationVariable))
	if err != nil {
		panic(err)
	}
	op := newOperator()
	op.Settings.Election = gopf.ElectionSettings{
		Enabled: true, Name: "replicas", Namespace: os.Getenv(namespaceVariable), Identity: os.Getenv(identityVariable),
		Duration: duration, RenewDeadline: duration * 2 / 3, RetryPeriod: duration / 8,
	}
	return op
}

// lifeProcess is an operator that notes the steps of its life.
func lifeProcess(startup, cleanup error) *gopf.Operator {
	op := newOperator()
	op.OnStartup("startup", func(context.Context, *gopf.Activity) error {
		if err := noteCall("startup"); err != nil {
			return err
		}
		return startup
	})
	op.OnCleanup("cleanup", func(_ context.Context, a *gopf.Activity) error {
		if err := noteCall("cleanup, API: %v", a.API != nil); err != nil {
			return err
		}
		return cleanup
	})
	(&diary{}).handles(op, "")
	return op
}

func noteCall(format string, args ...any) error {
	file, err := os.OpenFile(os.Getenv(callsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return gopf.Permanent(err)
	}
	defer file.Close()
	_, err = fmt.Fprintf(file, format+"\n", args...)
	return err
}

// calls is a file for those of operators in processes.
type calls struct{ path string }

func newCalls(t *testing.T) calls { return calls{filepath.Join(t.TempDir(), "calls")} }

func (c calls) all() []string {
	text, err := os.ReadFile(c.path)
	if err != nil {
		return nil // nobody was called yet
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// launch starts an operator in the namespace.
func (s *space) launch(name string, to calls, variables ...string) *kit.Process {
	s.T.Helper()
	log := kit.NewTitledLogbook(s.T, fmt.Sprintf("the output of %s %q", name, variables))
	variables = append([]string{operatorVariable + "=" + name, namespaceVariable + "=" + s.Name, callsVariable + "=" + to.path}, variables...)
	return kit.Launch(s.T, kubeconfig, log, variables, os.Args[0], "run", "--namespace", s.Name, "--verbose")
}
