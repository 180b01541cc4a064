package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/serve/side8"
)

// runSide8 runs the scripts of Side8's k8s-operator.
func runSide8(args []string) int {
	options, flags, err := side8Args(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n\n%s", err, usage)
		return 2
	}
	op := gopf.New(gopf.Identity("side8." + options.Group))
	side8.Declare(op, options)
	os.Args = append([]string{os.Args[0], "run"}, flags...)
	cli.Main(op)
	return 0 // not reached
}

// side8Args separates the flags of Side8 from those of an operator. Side8 serves all
// namespaces.
func side8Args(args []string) (o side8.Options, flags []string, err error) {
	o.Apply, o.Delete = "./apply", "./delete"
	level := ""
	known := map[string]*string{"--fqdn": &o.Group, "--version": &o.Version, "--resource": &o.Resource, "--apply": &o.Apply, "--delete": &o.Delete, "--log-level": &level}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		target, ok := known[name]
		switch {
		case !ok:
			flags = append(flags, args[i])
			continue
		case !given && i+1 == len(args):
			return o, nil, fmt.Errorf("%w: %s needs a value", errUsage, name)
		case !given:
			i++
			value = args[i]
		}
		*target = value
	}
	if o.Group == "" || o.Version == "" || o.Resource == "" {
		return o, nil, fmt.Errorf("%w: --side8 needs --fqdn, --version and --resource", errUsage)
	}
	switch strings.ToLower(level) {
	case "debug":
		flags = append(flags, "--verbose")
	case "warning", "error", "critical":
		flags = append(flags, "--quiet")
	}
	if !slices.ContainsFunc(flags, namespaced) {
		flags = append(flags, "--all-namespaces")
	}
	return o, flags, nil
}
