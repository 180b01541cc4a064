package kube

import "testing"

func TestPaths(t *testing.T) {
	cases := map[string]struct {
		target Target
		want   string
	}{
		"core, all namespaces":       {Target{Info: pods}, "/api/v1/pods"},
		"core, one namespace":        {Target{Info: pods, Namespace: "ns"}, "/api/v1/namespaces/ns/pods"},
		"core, one object":           {Target{Info: pods, Namespace: "ns", Name: "n"}, "/api/v1/namespaces/ns/pods/n"},
		"cluster-scoped":             {Target{Info: nodes}, "/api/v1/nodes"},
		"cluster-scoped, one object": {Target{Info: nodes, Name: "system:n"}, "/api/v1/nodes/system:n"},
		"a subresource":              {Target{Info: examples, Namespace: "ns", Name: "n", Subresource: "status"}, "/apis/kopf.dev/v1/namespaces/ns/kopfexamples/n/status"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := c.target.Path(); got != c.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestInvalidTargets(t *testing.T) {
	for name, target := range map[string]Target{
		"a namespace of a cluster-scoped resource": {Info: nodes, Namespace: "ns"},
		"a name without a namespace":               {Info: pods, Name: "n"},
		"a subresource without a name":             {Info: pods, Namespace: "ns", Subresource: "status"},
		"no resource":                              {Name: "n"},
		"a name that leads elsewhere":              {Info: pods, Namespace: "ns", Name: "../../secrets"},
		"a namespace that leads elsewhere":         {Info: pods, Namespace: "..", Name: "n"},
	} {
		t.Run(name, func(t *testing.T) {
			if path, err := target.Path(); err == nil {
				t.Errorf("got %q, want an error", path)
			}
		})
	}
}
