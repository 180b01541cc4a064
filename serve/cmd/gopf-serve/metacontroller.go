package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/serve/metacontroller"
)

// runMetacontroller serves the controller resources of Metacontroller.
func runMetacontroller(args []string) int {
	options, flags, ignored, err := metacontrollerArgs(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n\n%s", err, usage)
		return 2
	}
	for _, name := range ignored {
		fmt.Fprintf(os.Stderr, "The flag %s of Metacontroller has no effect here.\n", name)
	}
	op := gopf.New(gopf.Identity("metacontroller.gopf.dev"))
	metacontroller.Declare(op, options)
	os.Args = append([]string{os.Args[0], "run"}, flags...)
	cli.Main(op)
	return 0 // not reached
}

// noEffect are flags of Metacontroller that are accepted: limits of the client, and settings
// that an operator has under other names.
var noEffect = []string{
	"--client-go-qps", "--client-go-burst", "--events-qps", "--events-burst", "--cache-flush-interval", "--metrics-address", "--pprof-address",
	"--leader-election-resource-lock", "--leader-election-namespace", "--leader-election-id", "--health-probe-bind-address",
	"--zap-log-level", "--zap-encoder", "--zap-stacktrace-level", "--zap-time-encoding",
}

// metacontrollerArgs separates the flags of Metacontroller from those of an operator.
// ignored are the given flags without effect. Metacontroller serves all namespaces.
func metacontrollerArgs(args []string) (o metacontroller.Options, flags, ignored []string, err error) {
	var allow, target, workers, interval, strategy, manager string
	known := map[string]*string{
		"--allow-kinds": &allow, "--target-label-selector": &target, "--workers": &workers, "--discovery-interval": &interval, "--apply-strategy": &strategy,
		"--apply-strategy-ssa-field-manager": &manager,
	}
	var unused string
	for _, name := range noEffect {
		known[name] = &unused
	}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		into, ok := known[name]
		switch {
		case name == "--leader-election":
			if value != "false" {
				flags = append(flags, "--election=lease")
			}
			continue
		case name == "--zap-devel":
			ignored = append(ignored, name)
			continue
		case !ok:
			flags = append(flags, args[i])
			continue
		case !given && i+1 == len(args):
			return o, nil, nil, fmt.Errorf("%w: %s needs a value", errUsage, name)
		case !given:
			i++
			value = args[i]
		}
		*into = value
		if into == &unused {
			ignored = append(ignored, name)
		}
	}
	if allow != "" {
		o.AllowKinds = strings.Split(allow, ",")
	}
	if target != "" {
		if o.Target, err = labels.Parse(target); err != nil {
			return o, nil, nil, fmt.Errorf("%w: --target-label-selector: %w", errUsage, err)
		}
	}
	if workers != "" {
		if o.Workers, err = strconv.Atoi(workers); err != nil || o.Workers < 1 {
			return o, nil, nil, fmt.Errorf("%w: --workers needs a number above 0", errUsage)
		}
	}
	if interval != "" {
		if o.Discovery, err = time.ParseDuration(interval); err != nil || o.Discovery <= 0 {
			return o, nil, nil, fmt.Errorf("%w: --discovery-interval needs a duration above 0", errUsage)
		}
	}
	switch strategy {
	case "", "dynamic-apply":
	case "server-side-apply":
		o.ServerSide = cmp.Or(manager, "metacontroller")
	default:
		return o, nil, nil, fmt.Errorf("%w: --apply-strategy is dynamic-apply or server-side-apply", errUsage)
	}
	if !slices.ContainsFunc(flags, namespaced) {
		flags = append(flags, "--all-namespaces")
	}
	return o, flags, ignored, nil
}

// namespaced reports whether a flag names the namespaces of an operator.
func namespaced(f string) bool {
	return f == "-n" || f == "-A" || f == "--all-namespaces" || strings.HasPrefix(f, "--namespace")
}
