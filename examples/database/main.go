// Command database is an operator for databases. Each Database has a StatefulSet, a
// Service and a Secret with a password. A CronJob backs it up every night, unless
// backups are disabled.
package main

import "gopf.dev/gopf/cli"

func main() { cli.Main(newOperator()) }
