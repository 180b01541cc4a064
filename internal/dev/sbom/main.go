// Command sbom prints a bill of materials, in the format SPDX 2.3, for Go executables: all
// modules that they contain, with versions and checksums. See hack/dist.
//
//	go run ./internal/dev/sbom -version v0.1.0 FILE...
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	version := flag.String("version", "", "the version of the release")
	flag.Parse()
	if *version == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: sbom -version VERSION FILE...")
		os.Exit(2)
	}
	modules := materials{}
	for _, file := range flag.Args() {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sbom:", err)
			os.Exit(1)
		}
		modules.add(info, *version)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(modules.document(*version, time.Now())); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}
