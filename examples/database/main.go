// Command database is an operator for databases: each has a StatefulSet, a Service,
// a password, and, unless it is not wanted, a nightly backup.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
