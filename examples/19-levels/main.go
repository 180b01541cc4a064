// Command 19-levels is an operator whose children have children.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
