package cli

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gopf.dev/gopf/internal/suggest"
)

// Annotations of flags.
const (
	parameter = "parameter" // what its variables end with, if not with its name
	origin    = "origin"    // the variable that it was set by
)

// unnamed is the parameter of flags that have no variables.
const unnamed = "-"

// prefixes begin the names of variables; the first that is set counts.
var prefixes = [...]string{"GOPF", "KOPF"}

// variables are the names of those that set the flag of the command.
func variables(cmd *cobra.Command, f *pflag.Flag) []string {
	name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
	if p := f.Annotations[parameter]; len(p) > 0 {
		name = p[0]
	}
	if name == unnamed || f.Name == "help" {
		return nil
	}
	var names []string
	for _, prefix := range prefixes {
		names = append(names, prefix+"_"+strings.ToUpper(cmd.Name())+"_"+name)
	}
	return names
}

// readEnvironment sets the flags that are not on the command line by variables.
// Those that are empty count as not set.
func readEnvironment(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || err != nil {
			return
		}
		for _, name := range variables(cmd, f) {
			if value := os.Getenv(name); value != "" {
				err = setFlag(cmd.Flags(), f, name, value)
				return
			}
		}
	})
	return err
}

// unknownVariables are those of the environment that look as if they were for the
// command, but set nothing: misspelt ones. Those of Kopf's may be for a version of
// it with other flags, and are not looked at.
func unknownVariables(cmd *cobra.Command, environment []string) []string {
	known := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, name := range variables(cmd, f) {
			known[name] = true
		}
	})
	var unknown []string
	for _, pair := range environment {
		name, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefixes[0]+"_"+strings.ToUpper(cmd.Name())+"_") && value != "" && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// warnOfVariables tells of variables that have no meaning.
func warnOfVariables(cmd *cobra.Command, log *slog.Logger) {
	for _, name := range unknownVariables(cmd, os.Environ()) {
		log.Warn("A variable has no meaning and is ignored: see --help for those that have.", "variable", name)
	}
}

func setFlag(flags *pflag.FlagSet, f *pflag.Flag, name, value string) error {
	values := []string{value}
	switch f.Value.Type() {
	case "bool":
		b, known := boolean(value)
		if !known {
			return misuse("the variable %s is %q: use 1 or 0, true or false, yes or no, on or off", name, value)
		}
		values[0] = b
	case "stringArray":
		values = strings.Fields(value)
	}
	for _, v := range values {
		err := flags.Set(f.Name, v)
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			return misuse("the variable %s is %q: %s", name, v, suggest.Values(bad))
		} else if err != nil {
			return misuse("the variable %s: %w", name, err)
		}
	}
	return flags.SetAnnotation(f.Name, origin, []string{name})
}

// boolean is what Kopf takes for true and false, as flags have it.
func boolean(s string) (value string, known bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	switch {
	case slices.Contains([]string{"1", "true", "t", "yes", "y", "on"}, s):
		return "true", true
	case slices.Contains([]string{"0", "false", "f", "no", "n", "off"}, s):
		return "false", true
	}
	return "", false
}

// source is how the user has given the flag, for messages about it.
func source(flags *pflag.FlagSet, name string) string {
	if o := flags.Lookup(name).Annotations[origin]; len(o) > 0 {
		return o[0]
	}
	return "--" + name
}

// annotate gives the variables of a flag a name other than the flag's.
func annotate(flags *pflag.FlagSet, flag, name string) {
	if err := flags.SetAnnotation(flag, parameter, []string{name}); err != nil {
		panic(err) // there is no such flag
	}
}

// aboutVariables is the paragraph on them for the help of a command.
func aboutVariables(command string, more ...string) string {
	text := `Flags may also be given as variables, which flags on the command line override:
GOPF_COMMAND_ and the name of the flag in capitals, as GOPF_COMMAND_LOG_FORMAT=json.
KOPF_COMMAND_… of Kopf's counts as well. These differ from their flags: …_CLUSTERWIDE
is --all-namespaces, …_NAMESPACES is --namespace (with blanks between several)`
	text = strings.ReplaceAll(text, "COMMAND", strings.ToUpper(command))
	return text + strings.Join(more, "") + "."
}
