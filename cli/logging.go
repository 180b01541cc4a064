package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"gopf.dev/gopf/logs"
)

// logFlags are the flags about logging, which all commands have.
type logFlags struct {
	verbose, debug, quiet bool
	format                string
	prefix                bool
	refkey                string

	flags *pflag.FlagSet
}

func (l *logFlags) add(flags *pflag.FlagSet) {
	l.flags = flags
	flags.BoolVarP(&l.verbose, "verbose", "v", false, "log what the framework does")
	flags.BoolVarP(&l.debug, "debug", "d", false, "the same as --verbose")
	flags.BoolVarP(&l.quiet, "quiet", "q", false, "log only warnings and errors")
	flags.StringVar(&l.format, "log-format", string(logs.Full), "the `format` of lines: plain, full or json")
	flags.BoolVar(&l.prefix, "log-prefix", true, "begin lines about objects with their names; off for json unless given")
	flags.StringVar(&l.refkey, "log-refkey", logs.Object, "the `key` of the object in json lines")
}

func (l *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	o := logs.Options{
		Format: logs.Format(strings.ToLower(l.format)),
		Level:  slog.LevelInfo,
		Prefix: l.prefix,
		RefKey: l.refkey,
		Colour: isTerminal(w),
	}
	switch {
	case o.Format != logs.Plain && o.Format != logs.Full && o.Format != logs.JSON:
		return nil, fmt.Errorf("--log-format is %q: use plain, full or json", l.format)
	case l.verbose || l.debug:
		o.Level = slog.LevelDebug
	case l.quiet:
		o.Level = slog.LevelWarn
	}
	if o.Format == logs.JSON && !l.flags.Changed("log-prefix") {
		o.Prefix = false
	}
	return slog.New(logs.New(w, o)), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""
}
