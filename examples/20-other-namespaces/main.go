// Command 20-other-namespaces is an operator whose objects have children in other namespaces.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
