package gopf

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

func noop(context.Context, *Change[Unstructured]) error { return nil }

func TestDeclarationErrorsIncludeFileAndLine(t *testing.T) {
	cases := map[string]struct {
		declare func(op *Operator)
		want    string // "" means no error
	}{
		"nothing wrong":                 {func(op *Operator) { op.Resource("pods").OnCreate("a", noop) }, ""},
		"no id":                         {func(op *Operator) { op.Resource("pods").OnCreate("", noop) }, "a handler has no id"},
		"no function":                   {func(op *Operator) { op.Resource("pods").OnCreate("a", nil) }, `handler "a" has no function`},
		"an id that cannot be stored":   {func(op *Operator) { op.Resource("pods").OnCreate("a b", noop) }, `the id "a b" cannot be stored`},
		"a resource with empty parts":   {func(op *Operator) { op.Resource("kopf.dev//x").OnCreate("a", noop) }, "has an empty part"},
		"a resource with many parts":    {func(op *Operator) { op.Resource("a/b/c/d").OnCreate("a", noop) }, "has too many parts"},
		"a selector of nothing":         {func(op *Operator) { ForSelector[Unstructured](op, kind.Selector{}) }, "names no resources"},
		"two with one id":               {func(op *Operator) { r := op.Resource("pods"); r.OnCreate("a", noop); r.OnCreate("a", noop) }, `duplicate handler "a", first declared at `},
		"two with one id, overlapping":  {func(op *Operator) { r := op.Resource("pods"); r.On(Create|Update, "a", noop); r.OnUpdate("a", noop) }, "duplicate handler"},
		"one id for disjoint reasons":   {func(op *Operator) { r := op.Resource("pods"); r.OnCreate("a", noop); r.OnDelete("a", noop) }, ""},
		"one id for two resources":      {func(op *Operator) { op.Resource("pods").OnCreate("a", noop); op.Resource("nodes").OnCreate("a", noop) }, ""},
		"the whole metadata as a field": {func(op *Operator) { op.Resource("pods").Field("metadata").OnUpdate("a", noop) }, "use a field like metadata.labels"},
		"the resource version as field": {func(op *Operator) { op.Resource("pods").Field("/metadata/resourceVersion").OnUpdate("a", noop) }, "changes with every write"},
		"two fields":                    {func(op *Operator) { op.Resource("pods").Field("spec.a").Field("spec.b").OnUpdate("a", noop) }, "a handle can have only one field"},
		"value and change": {func(op *Operator) {
			op.Resource("pods").Field("spec.a").Value(Present).Changed(Any, Any).OnUpdate("a", noop)
		}, "cannot be combined"},
		"optional creation":             {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, Optional()) }, "Optional is for deletion handlers"},
		"resuming options elsewhere":    {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, AlsoDeleted()) }, "AlsoDeleted is for resuming handlers"},
		"no reason":                     {func(op *Operator) { op.Resource("pods").On(0, "a", noop) }, "has no valid reasons"},
		"a bad path":                    {func(op *Operator) { op.Resource("pods").WithField("", Present).OnCreate("a", noop) }, "path"},
		"a misspelled field":            {func(op *Operator) { For[*corev1.Pod](op, "v1/pods").WithField("spec.nodeNmae", Present) }, "spec.nodeNmae: *Pod has no such field; did you mean spec.nodeName?"},
		"a misspelled parent":           {func(op *Operator) { For[*corev1.Pod](op, "v1/pods").Field("stauts.phase") }, "stauts.phase: *Pod has no such field; did you mean status.phase?"},
		"a misspelled field of OnField": {func(op *Operator) { For[*corev1.Pod](op, "v1/pods").OnField("a", "/spec/hostnmae", nil) }, "spec.hostnmae: *Pod has no such field; did you mean spec.hostname?"},
		"misspelled metadata":           {func(op *Operator) { op.Resource("pods").Field("metadata.lables.a") }, "metadata.lables.a: the metadata of objects has no such field; did you mean metadata.labels.a?"},
		"a misspelled label key":        {func(op *Operator) { op.Resource("pods").Field("/metadata/lables/a.b~1c") }, "did you mean /metadata/labels/a.b~1c?"},
		"a field without a type":        {func(op *Operator) { op.Resource("pods").Field("spec.nodeNmae") }, ""},
		"a field that a type lacks":     {func(op *Operator) { For[*corev1.Pod](op, "v1/pods").Field("spec.somethingElse") }, ""},
		"a result like a status field":  {func(op *Operator) { For[*corev1.Pod](op, "v1/pods").Field("status.phas") }, ""},
		"no filter function":            {func(op *Operator) { op.Resource("pods").When(nil).OnCreate("a", noop) }, "When has no function"},
		"a bad former id":               {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, Formerly("?")) }, "cannot be stored"},
		"two event handlers, one id":    {func(op *Operator) { r := op.Resource("pods"); r.OnEvent("a", nothing); r.OnEvent("a", nothing) }, "duplicate handler"},
		"an event handler for a field":  {func(op *Operator) { op.Resource("pods").Field("spec").Value(Present).OnEvent("a", nothing) }, ""},
		"an event handler for a change": {func(op *Operator) { op.Resource("pods").Field("spec").Changed(Any, Present).OnEvent("a", nothing) }, "use Value instead of Changed"},
		"a reserved id":                 {func(op *Operator) { op.Resource("pods").OnEvent("gopf.bound", nothing) }, "reserved"},

		"negative retries":       {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, MaxAttempts(-1)) }, `handler "a": MaxAttempts is negative: -1; leave it out for no limit`},
		"a negative backoff":     {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, Backoff(-time.Second)) }, "Backoff is negative: -1s"},
		"a negative timeout":     {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, Timeout(-time.Second)) }, "Timeout is negative: -1s"},
		"no backoff":             {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, Backoff(0), MaxAttempts(0)) }, ""},
		"a backoff of 30":        {func(op *Operator) { op.Resource("pods").OnCreate("a", noop, Backoff(30)) }, "Backoff is only 30ns; add the unit, as in 30*time.Second"},
		"retries of an index":    {func(op *Operator) { Index(op.Resource("pods"), "a", indexing, MaxAttempts(-2)) }, "MaxAttempts is negative: -2"},
		"retries of a startup":   {func(op *Operator) { op.OnStartup("a", starting, MaxAttempts(-2)) }, "MaxAttempts is negative: -2"},
		"a timer of 30":          {func(op *Operator) { op.Resource("pods").Timer("a", 30, ticking) }, "the interval is only 30ns; add the unit, as in 30*time.Second"},
		"a timer of the past":    {func(op *Operator) { op.Resource("pods").Timer("a", -time.Second, ticking) }, "the interval is negative: -1s"},
		"a timer that runs once": {func(op *Operator) { op.Resource("pods").Timer("a", 0, ticking) }, ""},
		"idle for 30":            {func(op *Operator) { op.Resource("pods").Timer("a", time.Minute, ticking, Idle(30)) }, "Idle is only 30ns"},
		"a delay of 30":          {func(op *Operator) { op.Resource("pods").Timer("a", time.Minute, ticking, InitialDelay(30)) }, "InitialDelay is only 30ns"},
		"a negative grace":       {func(op *Operator) { op.Resource("pods").Daemon("a", running, StopGrace(-1)) }, "StopGrace is negative"},
		"an abandoned daemon":    {func(op *Operator) { op.Resource("pods").Daemon("a", running, StopTimeout(10)) }, "StopTimeout is only 10ns"},
		"selected for a daemon":  {func(op *Operator) { op.Resource("pods").Select("a=b").Daemon("a", running) }, ""},
		"selected for deletion":  {func(op *Operator) { op.Resource("pods").Select("a=b").OnDelete("a", noop) }, ""},
		"selected for events":    {func(op *Operator) { op.Resource("pods").Select("a=b").OnEvent("a", nothing) }, ""},
		"handed over":            {func(op *Operator) { op.Resource("pods").HandOver().OnDelete("a", noop) }, "HandOver is for handles with Select"},
		"handed over by one": {func(op *Operator) {
			op.Resource("pods").Select("a=b").HandOver().OnDelete("a", noop)
			op.Resource("pods").Select("a=b").OnUpdate("b", noop)
		}, "is declared with HandOver; use it for all"},
		"selected differently": {func(op *Operator) {
			op.Resource("pods").Select("a=b").OnCreate("a", noop)
			op.Resource("pods").OnUpdate("b", noop)
		}, `handlers of pods select different objects: "a=b" by "a" (`},
		"selected alike": {func(op *Operator) {
			op.Resource("pods").Select("a=b").OnCreate("a", noop)
			op.Resource("pods").Select("a=b").OnUpdate("b", noop)
			op.Resource("nodes").OnUpdate("b", noop)
		}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			op := New()
			c.declare(op)
			err := op.Err()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			case c.want != "":
				problem := err.(*DeclarationError).Problems[0].Error()
				if !strings.Contains(strings.Fields(problem)[0], "/declarations_test.go:") {
					t.Errorf("%v does not start with the file and line", problem)
				}
			}
		})
	}
}

func indexing(context.Context, *Subject[Unstructured]) (map[string]string, error) { return nil, nil }

func starting(context.Context, *Activity) error { return nil }

func ticking(context.Context, *Tick[Unstructured]) error { return nil }

func running(context.Context, *Daemon[Unstructured]) error { return nil }

func nothing(context.Context, *WatchEvent[Unstructured]) error { return nil }

func TestRunRefusesInvalidDeclarations(t *testing.T) {
	op := New()
	op.Resource("pods").OnCreate("", noop)
	op.Resource("pods").OnUpdate("b", nil)
	for name, err := range map[string]error{"Err": op.Err(), "Run": op.Run(t.Context())} {
		if wrong, ok := errors.AsType[*DeclarationError](err); !ok || len(wrong.Problems) != 2 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFiltersDoNotChangeTheOriginalHandle(t *testing.T) {
	op := New()
	pods := For[*corev1.Pod](op, "v1/pods")
	a := pods.WithLabel("a", Present)
	b := a.WithLabel("b", Present)
	c := a.WithLabel("c", Present)
	if len(pods.criteria.Labels) != 0 || len(a.criteria.Labels) != 1 || b.criteria.Labels[1].Name != "b" || c.criteria.Labels[1].Name != "c" {
		t.Errorf("handles share their filters: %v %v %v %v", pods.criteria, a.criteria, b.criteria, c.criteria)
	}
}

func TestStoredIDsIncludeTheField(t *testing.T) {
	op := New()
	op.Resource("pods").OnField("resize", "spec.size", noop)
	op.Resource("pods").Field("/metadata/labels/app.kubernetes.io~1name").OnUpdate("rename", noop)
	for i, want := range []string{"resize/spec.size", "rename/metadata.labels.app.kubernetes.io/name"} {
		if got := op.handlers[i].ID; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReasonsHaveNames(t *testing.T) {
	if got := (Create | Delete).String(); got != "create|delete" {
		t.Errorf("got %q", got)
	}
}

func TestInvalidWebhookServerIsADeclarationError(t *testing.T) {
	op := New()
	op.Settings.Admission.Server = webhook.Local{ClientAuth: tls.RequireAndVerifyClientCert}
	for _, err := range []error{op.Err(), op.Run(t.Context())} {
		if _, ok := errors.AsType[*DeclarationError](err); !ok || !strings.Contains(err.Error(), "requires a ClientCAFile") {
			t.Errorf("got %v", err)
		}
	}
}

func TestFieldsThatATypeLacksAreDoubtful(t *testing.T) {
	pods := For[*corev1.Pod](New(), "v1/pods")
	for path, want := range map[string]string{
		"spec.nodeName":                   "",
		"spec.volumes":                    "",
		"spec.nodeSelector.zone":          "",
		"spec.runtimeVersion":             "spec.runtimeVersion: *Pod has no such field.",
		"spec.hostNames":                  "spec.hostNames: *Pod has no such field; did you mean spec.hostname?",
		"spec.volumes.0":                  "spec.volumes.0: in *Pod, spec.volumes is a list and has no fields.",
		"spec.nodeName.x":                 "spec.nodeName.x: in *Pod, spec.nodeName is a plain value and has no fields.",
		"status.create":                   "",
		"status.phas":                     "status.phas: *Pod has no such field; did you mean status.phase?",
		"metadata.zone":                   "metadata.zone: the metadata of objects has no such field.",
		"metadata.creationTimestamp":      "",
		"metadata.annotations.some/thing": "",
	} {
		if got := pods.WithField(path, Present).criteria.Fields[0].Doubt; got != want {
			t.Errorf("WithField(%s): got %q, want %q", path, got, want)
		}
		if got := pods.Field(path).field.Doubt; got != want {
			t.Errorf("Field(%s): got %q, want %q", path, got, want)
		}
	}
	if err := pods.op.Err(); err != nil {
		t.Error(err)
	}
}
