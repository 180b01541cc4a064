// Command tutorial-evc is the operator of docs/tutorial.md. It creates a PVC for each
// EphemeralVolumeClaim; both are deleted together.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
