package gopf

import (
	"os"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/buildinfo"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/storage/storagetest"
)

func TestIdentityNamesEverythingInTheCluster(t *testing.T) {
	t.Parallel()
	const name = "databases.example.com"
	op := New(Identity(name))
	if err := op.Err(); err != nil {
		t.Fatal(err)
	}
	s := op.Settings
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ got, want string }{
		"finalizer": {s.Persistence.Finalizer, name + "/finalizer"},
		"component": {s.Posting.ReportingComponent, name},
		"instance":  {s.Posting.ReportingInstance, host},
		"events":    {s.Posting.EventNamePrefix, name + "-"},
		"lease":     {s.Election.Name, name},
		"peering":   {s.Peering.Name, "default"},
		"webhooks":  {op.devName(), "dev." + name},
		"managed":   {s.Admission.Managed, ""},
		"prefixes":  {strings.Join(prefixesOf(t, s), " "), name + " " + name},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", what, c.got, c.want)
		}
	}
	run := runOptions{}
	config, err := run.engineConfig(op)
	if err != nil {
		t.Fatal(err)
	}
	if want := userAgent(name, buildinfo.Read()); config.Kube.UserAgent != want {
		t.Errorf("the user agent is %q, want %q", config.Kube.UserAgent, want)
	}
	if config.Election.Name != name || config.Admission.DevName != "dev."+name || len(config.Process.Former) > 0 {
		t.Errorf("lease %q, webhooks %q, former finalizers %q", config.Election.Name, config.Admission.DevName, config.Process.Former)
	}
}

func prefixesOf(t *testing.T, s Settings) (all []string) {
	t.Helper()
	for _, one := range []any{s.Persistence.Progress, s.Persistence.Base} {
		traces, ok := one.(storage.Tracer).Traces()
		if !ok {
			t.Errorf("the traces of %T are unknown", one)
		}
		all = append(all, traces.Prefixes...)
	}
	return all
}

func TestWithoutAnIdentityTheNamesAreThoseOfKopf(t *testing.T) {
	t.Parallel()
	op := New()
	s := op.Settings
	if s.Persistence.Finalizer != "kopf.zalando.org/KopfFinalizerMarker" || s.Posting.ReportingComponent != "kopf" || s.Posting.ReportingInstance != "dev" ||
		s.Posting.EventNamePrefix != "kopf-event-" || s.Election.Name != "" || op.devName() != "dev.gopf.dev" {
		t.Errorf("got %+v", s)
	}
	if got := strings.Join(prefixesOf(t, s), " "); got != "kopf.zalando.org kopf.zalando.org" {
		t.Errorf("the prefixes are %s", got)
	}
}

func TestFormerNamesAreRead(t *testing.T) {
	t.Parallel()
	op := New(Identity("new.example.com", FormerlyNamed("", "old.example.com")))
	if err := op.Err(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(op.Settings.Persistence.FormerFinalizers, " "); got != "kopf.zalando.org/KopfFinalizerMarker old.example.com/finalizer" {
		t.Errorf("the former finalizers are %s", got)
	}
	for _, prefix := range []string{"new.example.com", "kopf.zalando.org", "old.example.com"} {
		body := storagetest.Body{"metadata": map[string]any{"annotations": map[string]any{
			prefix + "/last-handled-configuration": "{}", prefix + "/a": `{"retries":1}`,
		}}}
		if _, found, err := op.Settings.Persistence.Base.Load(t.Context(), body); !found || err != nil {
			t.Errorf("%s: base found %v, error %v", prefix, found, err)
		}
		if records, err := op.Settings.Persistence.Progress.Load(t.Context(), body, []string{"a"}); len(records) != 1 || err != nil {
			t.Errorf("%s: %d records, error %v", prefix, len(records), err)
		}
	}
	if err := op.checkStorages(); err != nil {
		t.Error(err)
	}
}

// Kopf's own prefix is a valid name. Its annotations are then not in a former place.
func TestKopfsPrefixCanBecomeAnIdentity(t *testing.T) {
	t.Parallel()
	op := New(Identity("kopf.zalando.org", FormerlyNamed("")))
	if err := op.Err(); err != nil {
		t.Fatal(err)
	}
	if err := op.checkStorages(); err != nil {
		t.Error(err)
	}
	body := storagetest.Body{"status": map[string]any{"kopf": map[string]any{"progress": map[string]any{"a": map[string]any{"retries": int64(1)}}}}}
	if records, err := op.Settings.Persistence.Progress.Load(t.Context(), body, []string{"a"}); len(records) != 1 || err != nil {
		t.Errorf("%d records, error %v", len(records), err)
	}
}

func TestSettingsAfterTheIdentityTakePrecedence(t *testing.T) {
	t.Parallel()
	op := New(Identity("new.example.com", FormerlyNamed("old.example.com")))
	op.Settings.Persistence.Finalizer = "old.example.com/finalizer"
	op.Settings.Election.Name = "lease"
	config, err := (&runOptions{}).engineConfig(op)
	if err != nil {
		t.Fatal(err)
	}
	if config.Process.Finalizer != "old.example.com/finalizer" || len(config.Process.Former) > 0 || config.Election.Name != "lease" {
		t.Errorf("finalizer %q, former ones %q, lease %q", config.Process.Finalizer, config.Process.Former, config.Election.Name)
	}
	op.Settings.Persistence.FormerFinalizers = []string{""}
	if _, err := (&runOptions{}).engineConfig(op); err == nil {
		t.Error("an empty former finalizer was accepted")
	}
}

func TestInvalidIdentitiesAreDeclarationErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a.", 127) + "com"
	for name, c := range map[string]struct {
		options []Option
		want    string
	}{
		"empty":              {[]Option{Identity("")}, "not a domain name"},
		"upper case":         {[]Option{Identity("Databases.example.com")}, "not a domain name"},
		"a slash":            {[]Option{Identity("example.com/databases")}, "not a domain name"},
		"too long":           {[]Option{Identity(long)}, "not a domain name"},
		"like Kopf":          {[]Option{Identity("kopf.example.com")}, "looks like one of Kopf's own"},
		"twice":              {[]Option{Identity("a.example.com"), Identity("b.example.com")}, `already has the identity "a.example.com"`},
		"formerly the same":  {[]Option{Identity("a.example.com", FormerlyNamed("a.example.com"))}, "the present name"},
		"an invalid former":  {[]Option{Identity("a.example.com", FormerlyNamed("A"))}, `FormerlyNamed("A"): the name is not a domain name`},
		"Kopf's own":         {[]Option{Identity("my.kopf.zalando.org")}, ""},
		"a valid former one": {[]Option{Identity("a.example.com", FormerlyNamed("kopf.example.com", ""))}, ""},
	} {
		err := New(c.options...).Err()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "identity_test.go:")):
			t.Errorf("%s: got %v, want %q with file and line", name, err, c.want)
		}
	}
}

func TestLongNamesAreCutWithAHash(t *testing.T) {
	t.Parallel()
	fits := strings.Repeat("a", 59) + ".com"
	if got := cutName(fits); got != fits {
		t.Errorf("a name of %d characters became %q", len(fits), got)
	}
	one, two := cutName("x"+fits), cutName("y"+fits)
	if len(one) > 63 || one == two || !strings.HasPrefix(one, "xaaa") {
		t.Errorf("got %q and %q", one, two)
	}
	dotted := strings.Repeat("a", 53) + "." + strings.Repeat("b", 20)
	if got := cutName(dotted); strings.Contains(got, ".-") {
		t.Errorf("%q is not a domain name", got)
	}
	op := New(Identity(dotted))
	if err := op.Err(); err != nil {
		t.Fatal(err)
	}
	s := op.Settings
	for what, name := range map[string]string{"lease": s.Election.Name, "component": s.Posting.ReportingComponent, "webhooks": op.devName()} {
		if len(name) > 63 {
			t.Errorf("%s: %q has %d characters", what, name, len(name))
		}
	}
	if s.Persistence.Finalizer != dotted+"/finalizer" {
		t.Errorf("the finalizer is %q", s.Persistence.Finalizer)
	}
}
