// Command nomain is a main package without any function.
package main
