// Package kit is what end-to-end tests share: a control plane, a namespace, an
// operator under test.
//
// Only tests import it. It does not know operators, but functions that run them:
// so that packages below the operator can test with it, too.
package kit
