// Package signature has a Register that takes something else.
package signature

// Register cannot be called with an operator.
func Register(name string) { _ = name }
