// Package devloop tests the inner loop of "gopf dev" with real processes: gopf, the in-memory
// API server, the go command, and operators that the tests edit.
package devloop
