package cli

import (
	"bytes"
	"strings"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/storage"
)

// printed runs the command 'policy' and returns its output.
func printed(t *testing.T, op *gopf.Operator, args ...string) (string, error) {
	t.Helper()
	cmd := command(op, nil)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"policy"}, args...))
	err := cmd.Execute()
	return out.String(), err
}

func TestThePolicyProtectsTheStoragesOfTheOperator(t *testing.T) {
	op := gopf.New()
	op.Settings.Persistence.Base = storage.MultiBase(storage.NewAnnotationBase("b.example.com"), storage.DefaultBase())
	text, err := printed(t, op, "--account", "system:serviceaccount:x:y", "--resource", "databases.example.com", "--resource", "pods", "--name", "mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"kind: ValidatingAdmissionPolicy\n", "kind: ValidatingAdmissionPolicyBinding\n", "name: mine", "system:serviceaccount:x:y",
		"databases/*", "pods/*", "b.example.com/", "kopf.zalando.org/",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// State under former names counts, so it is protected as well.
func TestThePolicyProtectsFormerNames(t *testing.T) {
	op := gopf.New(gopf.Identity("new.example.com", gopf.FormerlyNamed("", "old.example.com")))
	text, err := printed(t, op, "--account", "system:serviceaccount:x:y", "--resource", "pods")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"new.example.com/", "old.example.com/", "kopf.zalando.org/"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestThePolicyProtectsEveryKeyOfTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		op   *gopf.Operator
		want []string
	}{
		"state in the status": {gopf.New(gopf.Identity("rooms.example.com", gopf.StateInStatus(""))), []string{"'rooms'", "rooms.example.com/"}},
		"only the key is set": {withSettings(func(s *gopf.PersistenceSettings) { s.StatusKey = "databases" }), []string{"'databases'", "rooms.example.com/"}},
		"the whole settings":  {withSettings(func(s *gopf.PersistenceSettings) { *s = gopf.StateInStatus("databases") }), []string{"'databases'", "rooms.example.com/"}},
		"a former key":        {withSettings(func(s *gopf.PersistenceSettings) { s.FormerStatusKeys = []string{"databases"} }), []string{"'databases'", "rooms.example.com/"}},
	} {
		text, err := printed(t, c.op, "--account", "system:serviceaccount:x:y", "--resource", "databases.example.com")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(strings.ReplaceAll(text, "''", "'"), want) {
				t.Errorf("%s: no %s in\n%s", name, want, text)
			}
		}
	}
}

// withSettings returns an operator with other settings.
func withSettings(set func(*gopf.PersistenceSettings)) *gopf.Operator {
	op := gopf.New(gopf.Identity("rooms.example.com"))
	set(&op.Settings.Persistence)
	return op
}

// ownBase is a storage that says nothing about its places.
type ownBase struct{ storage.Base }

func TestThereIsNoPolicyForUnknownPlaces(t *testing.T) {
	op := gopf.New()
	op.Settings.Persistence.Base = ownBase{storage.DefaultBase()}
	text, err := printed(t, op, "--account", "system:serviceaccount:x:y", "--resource", "pods")
	if err == nil || !strings.Contains(err.Error(), "package storage") {
		t.Errorf("%v, %s", err, text)
	}
}

func TestAPolicyNeedsAnAccountAndResources(t *testing.T) {
	for _, args := range [][]string{{}, {"--account", "x"}, {"--resource", "pods"}, {"--account", "x", "--resource", "a/b/c"}} {
		if text, err := printed(t, gopf.New(), args...); err == nil {
			t.Errorf("%q: %s", args, text)
		}
	}
}
