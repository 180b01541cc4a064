package cli

import (
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/logs"
)

// formats are the values of --log-format.
var formats = [...]logs.Format{logs.Plain, logs.Full, logs.JSON, logs.Short}

// logFlags are the logging flags of all commands that connect to a cluster.
type logFlags struct {
	verbose, debug, quiet bool
	format                string
	prefix                bool
	refkey                string

	flags *pflag.FlagSet
}

func (l *logFlags) add(cmd *cobra.Command) {
	l.flags = cmd.Flags()
	l.flags.BoolVarP(&l.verbose, "verbose", "v", false, "also log debug messages of the framework")
	l.flags.BoolVarP(&l.debug, "debug", "d", false, "the same as --verbose, and log every request to the API server")
	l.flags.BoolVarP(&l.quiet, "quiet", "q", false, "log only warnings and errors")
	l.flags.StringVar(&l.format, "log-format", "", "`format` of log lines: plain, full, json or short; default: short on a terminal, full elsewhere")
	l.flags.BoolVar(&l.prefix, "log-prefix", true, "begin lines about objects with their names; default for json: off")
	l.flags.BoolFunc("no-log-prefix", "the opposite of --log-prefix", func(s string) error {
		no, err := strconv.ParseBool(s)
		if err != nil {
			return err
		}
		return l.flags.Set("log-prefix", strconv.FormatBool(!no))
	})
	annotate(l.flags, "no-log-prefix", unnamed)
	l.flags.StringVar(&l.refkey, "log-refkey", logs.Object, "`key` of the object reference in json lines")
	var values []cobra.Completion
	for _, f := range formats {
		values = append(values, string(f))
	}
	complete(cmd, "log-format", values...)
}

// complete makes the shell suggest the values of the flag.
func complete(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // programming error: there is no such flag
	}
}

func (l *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	f, isFile := w.(*os.File)
	terminal := isFile && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	o, err := l.options(terminal)
	o.Colour = terminal && os.Getenv("NO_COLOR") == ""
	return slog.New(logs.New(w, o)), err
}

// options returns the log options for a terminal or another output.
func (l *logFlags) options(terminal bool) (logs.Options, error) {
	o := logs.Options{Format: logs.Format(strings.ToLower(l.format)), Level: slog.LevelInfo, Prefix: l.prefix, RefKey: l.refkey}
	switch {
	case l.format == "" && terminal:
		o.Format = logs.Short
	case l.format == "":
		o.Format = logs.Full
	}
	known := false
	for _, f := range formats {
		known = known || o.Format == f
	}
	switch {
	case !known:
		return o, misuse("%s is %q; use plain, full or json, or short on terminals", source(l.flags, "log-format"), l.format)
	case l.debug:
		o.Level = kube.TrafficLevel
	case l.verbose:
		o.Level = slog.LevelDebug
	case l.quiet:
		o.Level = slog.LevelWarn
	}
	if o.Format == logs.JSON && !l.flags.Changed("log-prefix") {
		o.Prefix = false
	}
	return o, nil
}
