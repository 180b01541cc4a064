// Command release tags a version of all published modules of this repository:
//
//	go run ./internal/dev/release [-dry-run] v0.1.0
//
// It works in a clone, and copies the commit and its tags into the repository only if every
// check has passed. It never pushes. See "make release".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

// published are the folders of the modules that users download. All have the same version.
var published = []string{".", "gopftest", "serve", "otel", "webhook/ngrok", "cmd/devcluster", "cmd/gopf-manifests"}

func main() {
	dry := flag.Bool("dry-run", false, "check everything, and change nothing")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: release [-dry-run] VERSION")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := &release{repository: ".", modules: published, command: "cmd/gopf", starter: []string{"new", "demo"}, tools: "tools/go.mod", version: flag.Arg(0), dry: *dry, out: os.Stdout}
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
