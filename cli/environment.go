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
	parameter = "parameter" // suffix of its variables, if it is not the name of the flag
	origin    = "origin"    // the variable that set the flag
)

// unnamed is the parameter of flags without variables.
const unnamed = "-"

// withoutVariables is the annotation of commands whose flags have no variables.
const withoutVariables = "withoutVariables"

// prefixes are the prefixes of variables. The first one that is set counts.
var prefixes = [...]string{"GOPF", "KOPF"}

// variables returns the names of the variables that set the flag of the command.
func variables(cmd *cobra.Command, f *pflag.Flag) []string {
	name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
	if p := f.Annotations[parameter]; len(p) > 0 {
		name = p[0]
	}
	if name == unnamed || f.Name == "help" || cmd.Annotations[withoutVariables] != "" {
		return nil
	}
	var names []string
	for _, prefix := range prefixes {
		names = append(names, prefix+"_"+strings.ToUpper(cmd.Name())+"_"+name)
	}
	return names
}

// readEnvironment sets flags that are not on the command line from environment variables.
// Empty variables count as not set.
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

// unknownVariables returns misspelled variables: they look like those of the command, but
// set no flag. Kopf's variables are not checked, because its versions have other flags.
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

// warnOfVariables warns about unknown variables.
func warnOfVariables(cmd *cobra.Command, log *slog.Logger) {
	for _, name := range unknownVariables(cmd, os.Environ()) {
		log.Warn("Ignored an unknown environment variable; see --help for the known ones.", "variable", name)
	}
}

func setFlag(flags *pflag.FlagSet, f *pflag.Flag, name, value string) error {
	values := []string{value}
	switch f.Value.Type() {
	case "bool":
		b, known := boolean(value)
		if !known {
			return misuse("the variable %s is %q; use 1 or 0, true or false, yes or no, on or off", name, value)
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

// boolean converts the words that Kopf accepts for true and false to the values of flags.
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

// source returns the name of the flag or variable that the user has set, for messages.
func source(flags *pflag.FlagSet, name string) string {
	if o := flags.Lookup(name).Annotations[origin]; len(o) > 0 {
		return o[0]
	}
	return "--" + name
}

// annotate sets the suffix of a flag's variables.
func annotate(flags *pflag.FlagSet, flag, name string) {
	if err := flags.SetAnnotation(flag, parameter, []string{name}); err != nil {
		panic(err) // programming error: there is no such flag
	}
}

// aboutVariables returns the paragraph about variables for the help of a command.
func aboutVariables(command string, more ...string) string {
	text := `Flags can also be set by environment variables; the command line takes precedence.
The name of a variable is GOPF_COMMAND_ and the flag in capitals, for example
GOPF_COMMAND_LOG_FORMAT=json. Kopf's KOPF_COMMAND_… also works. Some names differ from
their flags: …_CLUSTERWIDE is --all-namespaces, …_NAMESPACES is --namespace (several
are separated by spaces)`
	text = strings.ReplaceAll(text, "COMMAND", strings.ToUpper(command))
	return text + strings.Join(more, "") + "."
}
