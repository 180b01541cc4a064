package permissions

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/describe"
)

var (
	databases = describe.Resource{Text: "example.com/v1/databases", Group: "example.com", Version: "v1", Plural: "databases"}
	pods      = describe.Resource{Text: "pods"}
	nodes     = describe.Resource{Text: "v1/nodes", Version: "v1", Plural: "nodes"}
	sets      = describe.Resource{Text: "apps/v1/StatefulSet", Group: "apps", Version: "v1", Plural: "statefulsets"}
	secrets   = describe.Resource{Text: "v1/secrets", Version: "v1", Plural: "secrets"}
)

// rich is an operator with all sources of permissions.
func rich() *describe.Operator {
	return &describe.Operator{
		Types: []describe.Type{{Resource: databases, Package: "main", Name: "Database", Status: true, Served: true}},
		Handlers: []describe.Handler{
			{ID: "create", Family: describe.Change, Where: "db/operator.go:10", Resource: databases},
			{ID: "look", Family: describe.Event, Where: "db/operator.go:11", Resource: pods},
			{ID: "drain", Family: describe.Daemon, Where: "db/operator.go:12", Resource: nodes},
			{ID: "children", Family: describe.Reconcile, Where: "db/operator.go:13", Resource: databases, Owns: []describe.Owned{{Resource: sets}}},
			{ID: "check", Family: describe.Validate, Where: "db/operator.go:14", Resource: databases, Review: &describe.Review{}},
			{ID: "boot", Family: describe.Startup, Where: "db/operator.go:15"},
		},
		Uses: []describe.Use{{Resource: secrets, Verbs: []string{"get", "create"}, Where: "db/operator.go:16"},
			{Resource: sets, Subresource: "scale", Verbs: []string{"patch"}, Where: "db/operator.go:17"}},
		State: describe.State{Prefixes: []string{"db.example.com"}},
		Settings: describe.Settings{
			Posting: true, Election: true, ElectionName: "db", WebhookSecret: "db-webhook", Managed: "db.example.com",
		},
	}
}

func lines(set Set) (all []string) {
	for _, p := range set {
		line := p.String() + " <- " + p.NeededBy()
		if p.OnlyFailures() {
			line += " (failures)"
		}
		all = append(all, line)
	}
	return all
}

func TestPermissionsAreDerivedWithTheirSources(t *testing.T) {
	set, problems := Derive(rich(), nil)
	if problems != nil {
		t.Error(problems)
	}
	const create, children, drain = "handler create at db/operator.go:10", "handler children at db/operator.go:13", "handler drain at db/operator.go:12"
	want := []string{
		"create events <- setting Posting.Enabled",
		"list pods <- handler look at db/operator.go:11 (failures)",
		"watch pods <- handler look at db/operator.go:11",
		"get secrets <- gopf.May at db/operator.go:16, setting Admission.Server",
		"create secrets <- gopf.May at db/operator.go:16",
		"get statefulsets.apps <- " + children + " (failures)",
		"list statefulsets.apps <- " + children + " (failures)",
		"watch statefulsets.apps <- " + children,
		"create statefulsets.apps <- " + children,
		"patch statefulsets.apps <- " + children,
		"delete statefulsets.apps <- " + children,
		"patch statefulsets.apps/scale <- gopf.May at db/operator.go:17",
		"get databases.example.com <- " + create + ", " + children + " (failures)",
		"list databases.example.com <- " + create + ", " + children + " (failures)",
		"watch databases.example.com <- " + create + ", " + children,
		"patch databases.example.com <- " + create + ", " + children,
		"patch databases.example.com/status <- " + create + ", " + children,
		"patch secrets named db-webhook in the namespace of the operator <- setting Admission.Server",
		"list leases.coordination.k8s.io in the namespace of the operator <- setting Election.Enabled (failures)",
		"watch leases.coordination.k8s.io in the namespace of the operator <- setting Election.Enabled (failures)",
		"create leases.coordination.k8s.io in the namespace of the operator <- setting Election.Enabled",
		"get leases.coordination.k8s.io named db in the namespace of the operator <- setting Election.Enabled",
		"patch leases.coordination.k8s.io named db in the namespace of the operator <- setting Election.Enabled",
		"get nodes <- " + drain + " (failures)",
		"list nodes <- " + drain + " (failures)",
		"watch nodes <- " + drain,
		"patch nodes <- " + drain,
		"patch nodes/status <- " + drain,
		"get mutatingwebhookconfigurations.admissionregistration.k8s.io named db.example.com <- setting Admission.Managed",
		"patch mutatingwebhookconfigurations.admissionregistration.k8s.io named db.example.com <- setting Admission.Managed (failures)",
		"get validatingwebhookconfigurations.admissionregistration.k8s.io named db.example.com <- handler check at db/operator.go:14",
		"list validatingwebhookconfigurations.admissionregistration.k8s.io named db.example.com <- handler check at db/operator.go:14 (failures)",
		"watch validatingwebhookconfigurations.admissionregistration.k8s.io named db.example.com <- handler check at db/operator.go:14",
		"patch validatingwebhookconfigurations.admissionregistration.k8s.io named db.example.com <- handler check at db/operator.go:14",
		"list customresourcedefinitions.apiextensions.k8s.io <- setting Scanning.Disabled (failures)",
		"watch customresourcedefinitions.apiextensions.k8s.io <- setting Scanning.Disabled",
		"list clusterkopfpeerings.kopf.dev <- setting Peering.Standalone (failures)",
		"watch clusterkopfpeerings.kopf.dev <- setting Peering.Standalone",
		"patch clusterkopfpeerings.kopf.dev <- setting Peering.Standalone",
		"operate nodes <- setting Persistence",
		"operate databases.example.com <- setting Persistence",
	}
	if diff := cmp.Diff(want, lines(set)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestSettingsThatAreOffNeedNoPermissions(t *testing.T) {
	d := &describe.Operator{Handlers: []describe.Handler{{ID: "look", Family: describe.Event, Where: "x.go:1", Resource: databases}}}
	d.Settings = describe.Settings{ScanningDisabled: true, Standalone: true}
	set, _ := Derive(d, nil)
	if diff := cmp.Diff([]string{"list databases.example.com <- handler look at x.go:1 (failures)", "watch databases.example.com <- handler look at x.go:1"}, lines(set)); diff != "" {
		t.Error(diff)
	}
}

func TestSecureEndpointsNeedReviews(t *testing.T) {
	d := &describe.Operator{Settings: describe.Settings{ScanningDisabled: true, Standalone: true, SecureMetrics: true, SecureInsight: true}}
	set, _ := Derive(d, nil)
	want := []string{
		"create tokenreviews.authentication.k8s.io <- setting Metrics.Secure, setting Insight.Secure",
		"create subjectaccessreviews.authorization.k8s.io <- setting Metrics.Secure, setting Insight.Secure",
	}
	if diff := cmp.Diff(want, lines(set)); diff != "" {
		t.Error(diff)
	}
	for _, p := range set {
		if p.Place != Cluster {
			t.Errorf("%s is needed in the whole cluster", p)
		}
	}
	d.Settings.SecureInsight = false
	if set, _ = Derive(d, nil); len(set) != 2 || set[0].NeededBy() != "setting Metrics.Secure" {
		t.Errorf("got %v", lines(set))
	}
}

func TestDefinitionsDecideAboutTheStatus(t *testing.T) {
	d := rich()
	set, _ := Derive(d, Kinds{"example.com/databases": {Namespaced: true}})
	if slices.ContainsFunc(set, func(p Permission) bool { return p.Resource == "databases/status" }) {
		t.Error("the status is granted although the definition has none")
	}
}

func TestResourcesThatAreNotNamedAreReported(t *testing.T) {
	d := &describe.Operator{Handlers: []describe.Handler{{ID: "all", Family: describe.Event, Where: "x.go:1", Resource: describe.Resource{Text: "*"}}}}
	if _, problems := Derive(d, nil); len(problems) != 1 || !strings.HasPrefix(problems[0], `x.go:1: handler all does not name one resource: "*"`) {
		t.Errorf("got %q", problems)
	}
}

func TestPlainNamesAreResolvedByDefinitions(t *testing.T) {
	d := func() *describe.Operator {
		return &describe.Operator{
			Handlers: []describe.Handler{{ID: "look", Family: describe.Event, Where: "x.go:1", Resource: describe.Resource{Text: "rooms"}}},
			Settings: describe.Settings{ScanningDisabled: true, Standalone: true},
		}
	}
	set, problems := Derive(d(), Kinds{"example.com/rooms": {Namespaced: true}})
	if problems != nil || len(set) != 2 || set[0].String() != "list rooms.example.com" {
		t.Errorf("got %v, %v", set, problems)
	}
	if _, problems = Derive(d(), Kinds{"example.com/rooms": {}, "example.org/rooms": {}}); len(problems) != 1 {
		t.Errorf("an ambiguous name: got %v", problems)
	}
}

// granted turns roles into the grants that they would be read as.
func granted(roles []Role) (all []Grant) {
	for _, r := range roles {
		for _, rule := range r.Rules {
			for _, verb := range rule.Verbs {
				all = append(all, Grant{Account: r.Account, Verb: verb, Group: rule.Group, Resource: rule.Resource, Name: rule.Name, Namespace: r.Namespace})
			}
		}
	}
	return all
}

func TestEveryDeletedRuleIsReportedWithItsSource(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"a", "b"}} {
		d := rich()
		d.Scope.Namespaces = namespaces
		target := Target{Name: "db", Namespace: "ops", Namespaces: namespaces}
		set, _ := Derive(d, nil)
		all := granted(set.Roles(target))
		if missing, unused := Compare(set, all, target); missing != nil || unused != nil {
			t.Fatalf("the generated roles: missing %v, unused %v", missing, unused)
		}
		for i, gone := range all {
			missing, unused := Compare(set, slices.Delete(slices.Clone(all), i, i+1), target)
			if len(missing) != 1 || missing[0].Verb != gone.Verb || missing[0].Resource != gone.Resource || missing[0].NeededBy() == "" {
				t.Errorf("without %v: missing is %v", gone, missing)
			}
			if len(unused) != 0 {
				t.Errorf("without %v: unused are %v", gone, unused)
			}
		}
	}
}

func TestAddedRulesAreReportedAsUnused(t *testing.T) {
	target := Target{Name: "db", Namespace: "ops"}
	set, _ := Derive(rich(), nil)
	all := granted(set.Roles(target))
	for _, added := range []Grant{
		{Verb: "delete", Resource: "pods"},
		{Verb: "patch", Group: "apps", Resource: "statefulsets/status"},
		{Verb: "patch", Resource: "secrets", Name: "other", Namespace: "ops"},
		{Verb: "*", Group: "example.com", Resource: "databases"},
		{Verb: "list", Group: "*", Resource: "*"},
		{Account: Operating, Verb: "operate", Resource: "pods"},
	} {
		missing, unused := Compare(set, append(slices.Clone(all), added), target)
		if missing != nil || !slices.Equal(unused, []Grant{added}) {
			t.Errorf("with %v: missing %v, unused %v", added, missing, unused)
		}
	}
}

func TestGrantsAreReadFromManifests(t *testing.T) {
	const text = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: db}
rules:
  - {apiGroups: [example.com], resources: [databases, databases/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: db}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: db}
subjects: [{kind: ServiceAccount, name: db, namespace: ops}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: db, namespace: ops}
rules:
  - {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [x], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: db, namespace: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: db}
subjects: [{kind: ServiceAccount, name: db, namespace: ops}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: db-operate}
rules:
  - {apiGroups: [example.com], resources: [databases], verbs: [operate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: another}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: db}
subjects: [{kind: ServiceAccount, name: another, namespace: ops}]
`
	got, err := Parse([]byte(text), Target{Name: "db", Namespace: "ops"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Grant{
		{Verb: "patch", Group: "example.com", Resource: "databases", Role: "ClusterRole db"},
		{Verb: "patch", Group: "example.com", Resource: "databases/status", Role: "ClusterRole db"},
		{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Name: "x", Namespace: "ops", Role: "Role ops/db"},
		{Account: Operating, Verb: "operate", Group: "example.com", Resource: "databases", Role: "ClusterRole db-operate"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestDifferencesNameTheSource(t *testing.T) {
	target := Target{Name: "db", Namespace: "ops"}
	set := Set{{Verb: "create", Resource: "secrets", Sources: []Source{{Handler: "password", Where: "db/x.go:3"}}}}
	got := Difference([]Grant{{Verb: "delete", Resource: "pods", Role: "ClusterRole db"}}, set, target)
	if diff := cmp.Diff([]string{"+ create secrets (handler password at db/x.go:3)", "- delete pods (ClusterRole db)"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCommentsNameVerbsAndHandlers(t *testing.T) {
	set, _ := Derive(rich(), nil)
	for _, role := range set.Roles(Target{Name: "db", Namespace: "ops"}) {
		for _, rule := range role.Rules {
			if rule.Resource == "pods" {
				if diff := cmp.Diff([]string{"list, watch: handler look; without: these handlers are not called"}, rule.Comments()); diff != "" {
					t.Error(diff)
				}
				return
			}
		}
	}
	t.Error("there is no rule for pods")
}

func TestWatchedKindsNeedNoWrites(t *testing.T) {
	set, problems := Derive(&describe.Operator{
		Handlers: []describe.Handler{{ID: "children", Family: describe.Reconcile, Where: "x.go:1", Resource: databases, Watches: []describe.Resource{secrets}}},
		Settings: describe.Settings{ScanningDisabled: true, Standalone: true},
	}, nil)
	var got []string
	for _, p := range set {
		if p.Resource == "secrets" {
			got = append(got, p.Verb+" for "+p.NeededBy())
		}
	}
	want := []string{"get for handler children at x.go:1", "list for handler children at x.go:1", "watch for handler children at x.go:1"}
	if problems != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, problems)
	}
}
