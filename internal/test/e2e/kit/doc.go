// Package kit is shared by the end-to-end tests: it provides a control plane, a namespace,
// and an operator under test.
//
// Only tests import it. It does not import operators, but takes functions that run them.
// Packages below the operator can therefore use it for their tests.
package kit
