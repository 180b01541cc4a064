// Command api prints the exported API of the public packages below a folder, one line for
// each function, type, method, field, constant and variable.
//
//	go run ./internal/dev/api [FOLDER]
//
// The lines are sorted: the output of two versions can be compared. See hack/api.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	lines, err := exported(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	for _, line := range lines {
		fmt.Println(line)
	}
}
