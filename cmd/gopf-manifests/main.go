// Command gopf-manifests generates custom resource definitions from Go types, for the
// command gopf, which builds it on first use. It is a separate module because of its
// dependencies.
//
// It reads a [Request] as JSON from stdin and writes the definitions as a JSON list to
// stdout. The exit code is 1 if they cannot be generated.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	var r Request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	crds, err := Generate(r)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(crds)
}

// Request names the types.
type Request struct {
	// Dir is a folder in the module of the operator.
	Dir string `json:"dir"`
	// Main is the package that "main" stands for: a folder or an import path.
	Main string `json:"main"`
	// StateKey is the key in the status with the state of the operator. Empty means none.
	StateKey string `json:"stateKey,omitempty"`
	// NoDocs leaves out the descriptions.
	NoDocs bool `json:"noDocs,omitempty"`
	// Types are the types of the definitions.
	Types []Type `json:"types"`
}

// Type is the Go type of one version of a resource.
type Type struct {
	Package string `json:"package"` // import path, or "main"
	Name    string `json:"name"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Plural  string `json:"plural"`
}
