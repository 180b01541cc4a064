package migrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gopf.dev/gopf/storage"
)

// takeover returns the file with the tests of the skeleton.
func (o *operator) takeover() string {
	var b strings.Builder
	b.WriteString(`func TestTheOperatorIsDeclaredCorrectly(t *testing.T) {
	if err := newOperator().Err(); err != nil {
		t.Error(err)
	}
}

`)
	all := o.tested()
	if len(all) == 0 || o.elsewhere {
		return b.String()
	}
	b.WriteString(`// calls starts the operator on a cluster with an object that the Python operator has left, and
// returns the ids of the change handlers that are called for it within a minute. Handlers
// that are called for resumed objects do not count. The functions are not called.
func calls(t *testing.T, kind gopftest.Kind, object map[string]any) []string {
	var mu sync.Mutex
	var called []string
	synctest.Test(t, func(t *testing.T) {
		cluster := gopftest.NewCluster(t)
		cluster.Define(t, kind)
		cluster.Create(t, &unstructured.Unstructured{Object: object})
		op := newOperator()
		op.Settings.Admission.Server = nil
		op.Around(func(_ context.Context, call *gopf.Call, _ func(context.Context) error) error {
			mu.Lock()
			defer mu.Unlock()
			if call.Type == "change" && call.Reason != gopf.Resume {
				called = append(called, call.Handler)
			}
			return nil
		})
		stop := gopftest.Start(t, op, cluster)
		time.Sleep(time.Minute)
		stop()
	})
	return called
}

`)
	prefix := o.prefix
	if prefix == "" {
		prefix = storage.DefaultPrefix
	}
	b.WriteString("func TestObjectsThatKopfHasHandledAreNotHandledAgain(t *testing.T) {\n")
	for _, r := range all {
		annotations := map[string]string{storage.Keys(prefix, "last-handled-configuration", false, false)[0]: r.essence}
		o.testCase(&b, r, annotations, "the object was handled by Kopf, and is handled again")
	}
	b.WriteString("}\n\n// The Python operator has called all handlers, and stopped before it saved the end of the change.\nfunc TestRecordsOfKopfCount(t *testing.T) {\n")
	for _, r := range all {
		annotations := map[string]string{}
		for _, id := range r.ids {
			record := `{"started":"2020-01-01T00:00:00.000000+00:00","stopped":"2020-01-01T00:00:01.000000+00:00","retries":1,"success":true,"failure":false}`
			for _, key := range storage.Keys(prefix, id, false, true) {
				annotations[key] = record
			}
		}
		o.testCase(&b, r, annotations, "a record of Kopf is not found")
	}
	b.WriteString("}\n")
	return b.String()
}

// subject is a resource with the handlers of its changes.
type subject struct {
	group, version, plural string
	ids                    []string
	spec                   map[string]bool // keys of the spec that handlers name
	essence                string
}

// tested returns the custom resources whose changes are handled.
func (o *operator) tested() (all []*subject) {
	for _, d := range o.joined() {
		h := d.first
		parts := strings.Split(h.resource.name, "/")
		if h.label != "change" || h.blocked || len(parts) != 3 || !strings.Contains(parts[0], ".") || strings.HasSuffix(parts[0], ".k8s.io") || strings.Contains(h.resource.name, "*") {
			continue
		}
		i := slices.IndexFunc(all, func(s *subject) bool { return s.group == parts[0] && s.version == parts[1] && s.plural == parts[2] })
		if i < 0 {
			i = len(all)
			all = append(all, &subject{group: parts[0], version: parts[1], plural: parts[2], spec: map[string]bool{}})
		}
		if !slices.Contains(all[i].ids, h.stored()) {
			all[i].ids = append(all[i].ids, h.stored())
		}
		if keys := strings.Split(h.field, "."); len(keys) == 2 && keys[0] == "spec" {
			all[i].spec[keys[1]] = true
		}
	}
	for _, s := range all {
		var fields []string
		for key := range s.spec {
			fields = append(fields, strconv.Quote(key)+`:"x"`)
		}
		slices.Sort(fields)
		s.essence = `{"spec":{` + strings.Join(fields, ",") + "}}\n"
		if len(fields) == 0 {
			s.spec["some"] = true
			s.essence = `{"spec":{"some":"x"}}` + "\n"
		}
	}
	return all
}

// testCase writes one case of a test.
func (o *operator) testCase(b *strings.Builder, s *subject, annotations map[string]string, message string) {
	var keys, fields []string
	for k, v := range annotations {
		keys = append(keys, fmt.Sprintf("%s: %s,\n", strconv.Quote(k), quote(v)))
	}
	for k := range s.spec {
		fields = append(fields, strconv.Quote(k)+`: "x"`)
	}
	slices.Sort(keys)
	slices.Sort(fields)
	const kind = "Migrated"
	fmt.Fprintf(b, "\tt.Run(%q, func(t *testing.T) {\n", s.plural+"."+s.group)
	fmt.Fprintf(b, "\t\tkind := gopftest.Kind{Group: %q, Version: %q, Plural: %q, Kind: %q, Namespaced: true, StatusSubresource: true}\n", s.group, s.version, s.plural, kind)
	fmt.Fprintf(b, "\t\tcalled := calls(t, kind, map[string]any{\n\"apiVersion\": %q, \"kind\": %q,\n\"metadata\": map[string]any{\"name\": \"a\", \"namespace\": \"default\", \"annotations\": map[string]any{\n%s}},\n", s.group+"/"+s.version, kind, strings.Join(keys, ""))
	fmt.Fprintf(b, "\"spec\": map[string]any{%s},\n})\n", strings.Join(fields, ", "))
	fmt.Fprintf(b, "\t\tif len(called) > 0 {\n\t\t\tt.Errorf(%q, called)\n\t\t}\n\t})\n", message+": %v")
}

// quote returns a Go string without escapes if possible.
func quote(s string) string {
	if strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}
