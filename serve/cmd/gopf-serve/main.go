// Command gopf-serve runs operators that are YAML files, for the command gopf, which builds
// it on first use. It is a separate module because of its dependencies.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/cli"
	"gopf.dev/gopf/serve"
	"gopf.dev/gopf/serve/spec"
	"gopf.dev/gopf/serve/tests"
)

// errUsage is an error in the command line.
var errUsage = errors.New("invalid command line")

const usage = `Usage:
  gopf serve OPERATOR.yaml [flags of an operator's command run]
  gopf serve --side8 --fqdn GROUP --version VERSION --resource PLURAL [--apply ./apply] [--delete ./delete] [flags of run]
  gopf serve --metacontroller [--allow-kinds PLURAL.GROUP,...] [--target-label-selector SELECTOR] [--workers N] [flags of run]
  gopf check OPERATOR.yaml
  gopf call HANDLER -f OBJECT.yaml [--was OLD.yaml] [--reason REASON] [--operator OPERATOR.yaml]
  gopf test TESTS.yaml [--update] [--crash]
  gopf schema
`

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "serve" {
		os.Exit(runServe(args[1:]))
	}
	if len(args) > 0 && args[0] == "reload" {
		os.Exit(runReload(args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, args, os.Stdout, os.Stderr)
	switch {
	case err == nil:
		return
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "Error: %v\n\n%s", err, usage)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "Error: %v\n", err)
	os.Exit(1)
}

// run runs a command other than serve.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: the command is missing", errUsage)
	}
	switch command, rest := args[0], args[1:]; command {
	case "check":
		return check(rest, stdout)
	case "call":
		return callHandler(ctx, rest, stdout, stderr)
	case "test":
		return test(ctx, rest, stdout)
	case "schema":
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(spec.Schema())
	default:
		return fmt.Errorf("%w: unknown command %q", errUsage, command)
	}
}

// split returns the folder and the name of a file.
func split(file string) (dir, base string) { return filepath.Dir(file), filepath.Base(file) }

// runServe runs an operator and returns the exit code.
func runServe(args []string) int {
	if len(args) > 0 && args[0] == "--side8" {
		return runSide8(args[1:])
	}
	if len(args) > 0 && args[0] == "--metacontroller" {
		return runMetacontroller(args[1:])
	}
	file, flags, install, err := serveArgs(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n\n%s", err, usage)
		return 2
	}
	dir, base := split(file)
	op, err := serve.New(os.DirFS(dir), base, serve.Dir(dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if install {
		installAtStartup(op, dir, base, flags)
	}
	os.Args = append([]string{os.Args[0], "run"}, flags...)
	cli.Main(op)
	return 0 // not reached
}

// serveArgs separates the file from the flags of the operator.
func serveArgs(args []string) (file string, flags []string, install bool, err error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return "", nil, false, fmt.Errorf("%w: name the file of the operator first, as in 'gopf serve operator.yaml --all-namespaces'", errUsage)
	}
	for _, a := range args[1:] {
		if a == "--install" {
			install = true
			continue
		}
		flags = append(flags, a)
	}
	return args[0], flags, install, nil
}

func check(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: name one file", errUsage)
	}
	dir, base := split(args[0])
	mistakes := 0
	for _, p := range serve.Inspect(os.DirFS(dir), base, serve.Dir(dir)) {
		p.Pos.File = filepath.Join(dir, p.Pos.File)
		fmt.Fprintln(stdout, p.Error())
		if !p.Warning {
			mistakes++
		}
	}
	if mistakes > 0 {
		return fmt.Errorf("%s has %d problems", args[0], mistakes)
	}
	fmt.Fprintf(stdout, "%s is correct.\n", args[0])
	return nil
}

// options are the flags of a command: "--name value", "--name=value" or "-f value".
func options(args []string, known map[string]*string, switches map[string]*bool) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		if on, ok := switches[name]; ok && !given {
			*on = true
			continue
		}
		target, ok := known[name]
		switch {
		case !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i])
			continue
		case !ok:
			return nil, fmt.Errorf("%w: unknown flag %s", errUsage, name)
		case !given && i+1 == len(args):
			return nil, fmt.Errorf("%w: %s needs a value", errUsage, name)
		case !given:
			i++
			value = args[i]
		}
		*target = value
	}
	return rest, nil
}

func callHandler(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	file, object, was, reason := "operator.yaml", "", "", ""
	rest, err := options(args, map[string]*string{"-f": &object, "--file": &object, "--was": &was, "--reason": &reason, "--operator": &file}, nil)
	if err != nil {
		return err
	}
	if len(rest) != 1 || object == "" {
		return fmt.Errorf("%w: name one handler, and an object with -f", errUsage)
	}
	trial := serve.Trial{Handler: rest[0], Reason: reason, Log: stderr}
	if trial.Object, err = readYAML(object); err != nil {
		return err
	}
	if was != "" {
		if trial.Old, err = readYAML(was); err != nil {
			return err
		}
	}
	dir, base := split(file)
	handlers, err := serve.Open(os.DirFS(dir), base, serve.Dir(dir))
	if err != nil {
		return err
	}
	defer handlers.Close()
	out, err := handlers.Try(ctx, trial)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(serve.OutputMap(out))
}

func readYAML(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := yaml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

func test(ctx context.Context, args []string, stdout io.Writer) error {
	update, crash := false, false
	rest, err := options(args, nil, map[string]*bool{"--update": &update, "--crash": &crash})
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return fmt.Errorf("%w: name one file with tests", errUsage)
	}
	testing.Init() // package gopftest reads the flags of go test
	if err := flag.CommandLine.Parse(nil); err != nil {
		return err
	}
	return tests.Run(ctx, rest[0], tests.Options{Update: update, Crash: crash, Out: stdout})
}
