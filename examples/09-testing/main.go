// Command 09-testing is an operator with tests.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
