// Package shape has a Register that returns something.
package shape

import "gopf.dev/gopf"

// Register cannot be called without looking at what it returns.
func Register(*gopf.Operator) error { return nil }
