package migrate

import "slices"

// localName returns the Go name of a local variable.
func localName(name string) string {
	name = identifier(name)
	if slices.Contains(goNames, name) {
		name += "Value"
	}
	return name
}

// goNames are names that functions and variables of the skeleton must not have: keywords,
// predeclared names, imported packages, and its own functions.
var goNames = []string{
	"break", "case", "chan", "const", "continue", "default", "defer", "else", "fallthrough", "for", "func", "go", "goto", "if", "import", "interface",
	"map", "package", "range", "return", "select", "struct", "switch", "type", "var",
	"any", "append", "bool", "byte", "cap", "clear", "close", "complex", "copy", "delete", "error", "false", "float64", "imag", "int", "int64", "len", "make", "max", "min",
	"new", "nil", "panic", "print", "println", "real", "recover", "rune", "string", "true", "uint", "init", "main",
	"admissionv1", "cli", "cmp", "context", "errors", "fmt", "gopf", "gopftest", "hierarchy", "kind", "os", "slog", "storage", "strings", "synctest", "testing", "time", "webhook",
	"newOperator", "at", "first", "truthy", "notTranslated", "op", "ctx", "c", "d", "e", "r", "s", "t", "a", "value", "present", "base", "progress",
}
