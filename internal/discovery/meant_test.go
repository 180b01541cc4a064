package discovery

import (
	"testing"

	"gopf.dev/gopf/kind"
)

func TestMisspelledResourcesAreRecognized(t *testing.T) {
	cluster := []kind.Info{
		{Version: "v1", Plural: "pods", Singular: "pod", Kind: "Pod", ShortNames: []string{"po"}},
		{Group: "apps", Version: "v1", Plural: "deployments", Singular: "deployment", Kind: "Deployment", ShortNames: []string{"deploy"}},
		{Group: "kopf.dev", Version: "v1", Plural: "kopfexamples", Singular: "kopfexample", Kind: "KopfExample", ShortNames: []string{"kex"}},
	}
	for asked, want := range map[string]string{
		"pdos":                            ` (did you mean "v1/pods"?)`,
		"v1/podss":                        ` (did you mean "v1/pods"?)`,
		"apps/v1/deploymnts":              ` (did you mean "apps/v1/deployments"?)`,
		"apps/v1beta1/deployments":        ` (did you mean "apps/v1/deployments"?)`,
		"app/v1/deployments":              ` (did you mean "apps/v1/deployments"?)`,
		"kopf.dev/kopfexmple":             ` (did you mean "kopf.dev/v1/kopfexamples"?)`,
		"koph.dev/v1/kopfexamples":        ` (did you mean "kopf.dev/v1/kopfexamples"?)`,
		"example.com/v1/databases":        "",
		"otherexample.com/v1/deployments": "",
		"category all":                    "",
	} {
		if got := meant(asked, cluster); got != want {
			t.Errorf("%q: got %q, want %q", asked, got, want)
		}
	}
}
