// Package kubectl tests that kubectl works with the in-memory API server. "make test-kubectl"
// runs the tests, which have the build tag gopf_kubectl, because they need kubectl.
package kubectl
