// Command tutorial-evc is the operator of docs/tutorial.md: claims for volumes that
// vanish with their owners.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
