// Package admission_test runs operators with handlers of reviews on a real control
// plane, and looks at what becomes of requests to it.
//
// Every test has a kind of its own, so that a webhook that refuses everything
// disturbs nobody else.
package admission_test

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// cluster is the control plane that all tests share.
var cluster *rest.Config

func TestMain(m *testing.M) {
	os.Exit(kit.Main(m, 8, func(c kit.Cluster) { cluster = c.Config }))
}
