package gopf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/placement"
	"gopf.dev/gopf/storage"
)

// StateInStatus returns settings that keep the state of the operator in the status of
// the objects instead of in annotations: progress, handling note and base, all in
// status.<key>. The key consists of letters, digits, "-" and "_".
//
//	op := gopf.New(gopf.Identity("databases.example.com", gopf.StateInStatus("")))
//	op.Settings.Persistence = gopf.StateInStatus("databases") // the same
//
// With an identity, an empty key means the first label of the identity. The finalizer
// stays that of the identity. State is moved from the annotations of the identity. Without
// an identity, both are Kopf's.
//
// A change takes one write if its handlers patch only the status, and if it needs no
// finalizer. A crash never repeats a handler whose outcome was written. Clients that may
// edit an object but not its status cannot forge state that is in the status. They can
// forge state in annotations, which counts for objects without state in the status; a
// policy against that is described in docs/trust.md.
//
// Every served version of the kind must have a status subresource, and its schema must
// keep status.<key>. The operator checks this at startup, and when the definition changes.
// It keeps the state of other kinds in annotations, and logs the YAML to add to their
// definitions. The state of built-in kinds is always in annotations.
//
// State in annotations, of Kopf or of an earlier version of the operator, counts. The next
// write of the status moves it, without a call of a handler.
func StateInStatus(key string) PersistenceSettings {
	return PersistenceSettings{StatusKey: cmp.Or(key, keyOfIdentity)}
}

// keyOfIdentity means the first label of the identity. It is not a valid key.
const keyOfIdentity = "."

// MoveState moves the state of all objects to another place: to "status" or to
// "annotations". It calls no handler, and prints its progress to out. With dryRun, it only
// counts the objects whose state is elsewhere. The operator itself must not run, unless it
// keeps its state in that place. A move that was interrupted continues with another call.
//
// State moves by itself with the writes of a running operator. Afterwards, the status of
// an object notes the annotations that it came from. MoveState removes the annotations and
// the note of all objects: from then on, annotations cannot be mistaken for state.
func (op *Operator) MoveState(ctx context.Context, to string, dryRun bool, out io.Writer, opts ...RunOption) error {
	if to != "status" && to != "annotations" {
		return fmt.Errorf("move the state: unknown place %q; use \"status\" or \"annotations\"", to)
	}
	if err := op.checkStorages(); err != nil {
		return err
	}
	config, err := op.commandConfig(opts)
	if err != nil {
		return err
	}
	return explainLogin(engine.MoveState(ctx, config, placement.Move{ToStatus: to == "status", DryRun: dryRun, Out: out}))
}

// identify implements [IdentityOption].
func (s PersistenceSettings) identify(id *identity) { id.settings = s }

// keepsInStatus reports whether state is kept in the status.
func (s PersistenceSettings) keepsInStatus() bool { return s.StatusKey != "" }

// persistence returns the settings with all storages. Settings of [StateInStatus] leave
// them unset.
func (op *Operator) persistence() (PersistenceSettings, error) {
	s := op.Settings.Persistence
	if !s.keepsInStatus() && len(s.FormerStatusKeys) == 0 {
		return s, nil
	}
	own := op.own
	if s.Finalizer == "" {
		s.Finalizer = own.Finalizer
		s.FormerFinalizers = slices.Concat(own.FormerFinalizers, s.FormerFinalizers)
	}
	if s.Progress == nil {
		s.Progress = own.Progress
	}
	if s.Base == nil {
		s.Base = own.Base
	}
	if s.StatusKey == keyOfIdentity {
		s.StatusKey = own.StatusKey
	}
	inStatus := op.Settings.Persistence.keepsInStatus()
	keys := slices.Concat([]string{s.StatusKey}, s.FormerStatusKeys, own.FormerStatusKeys)
	if !inStatus {
		keys = keys[1:]
	} else if keys[0] == "" {
		return s, errors.New("invalid settings: StateInStatus has no key, and the operator has no identity; give it a key")
	}
	s.Progress, s.Base = storage.NewStatusState(keys[0], keys[1:], s.Progress, s.Base).Storages(inStatus)
	return s, nil
}

// statusKey returns the default key in the status for an operator with the name.
func statusKey(name string) string {
	label, _, _ := strings.Cut(name, ".")
	return label
}
