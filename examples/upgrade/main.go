// Command upgrade is an operator that upgrades database clusters step by step.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
