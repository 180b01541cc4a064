// Package library is not a main package.
package library
