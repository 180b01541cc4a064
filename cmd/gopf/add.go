package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gopf.dev/gopf/internal/dev/scaffold"
)

// adding has the flags of the commands "add".
type adding struct {
	folder string
	print  bool
	kind   string
	field  string
	every  time.Duration
	group  string
	plural string
}

// newAdd returns the command "add".
func newAdd() *cobra.Command {
	var a adding
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a kind or a handler to an operator",
		Long: `Add a kind or a handler to the operator in the current folder.

Each command writes a file with a function, a file with its test, and inserts one line
into the function that declares the handlers: the one that calls gopf.For for the kind.
Nothing else changes, and no other file is needed: the code is yours to edit, rename and
move. If a name is taken, the command fails and writes nothing.

After changes of kinds and handlers, run "gopf manifests".`,
		Example: `  gopf add kind Backup
  gopf add handler update resize --for Database
  gopf add handler field scale --field spec.replicas
  gopf add timer check --every 10m
  gopf add webhook validate size --print`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&a.folder, "dir", ".", "`folder` of the package")
	flags.BoolVar(&a.print, "print", false, "print the changes and write nothing")
	cmd.AddCommand(a.newKind(), a.newHandler(), a.newTimer(), a.newDaemon(), a.newWebhook(), a.newReconcile())
	return cmd
}

func (a *adding) newKind() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kind KIND",
		Short: "Add a custom resource with its Go type, a handler and a test",
		Long: `Add a custom resource: its Go type, a handler that records the observed generation, and
a test. "gopf manifests" writes its definition.`,
		Example: "  gopf add kind Backup\n  gopf add kind Policy --group security.example.com --plural policies",
		Args:    exactly(1, "name one kind, as in 'gopf add kind Backup'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := scaffold.Load(a.folder)
			if err != nil {
				return err
			}
			group := cmp.Or(a.group, p.Group())
			if !groups.MatchString(group) {
				return usagef("%q is not a valid API group; name one with --group, such as example.com", group)
			}
			change, err := p.AddKind(scaffold.Kind{Name: args[0], Group: group, Version: "v1", Plural: cmp.Or(a.plural, plural(strings.ToLower(args[0])))})
			return a.finish(cmd.OutOrStdout(), change, err)
		},
	}
	cmd.Flags().StringVar(&a.group, "group", "", "API `group`; default: that of the first kind of the package")
	cmd.Flags().StringVar(&a.plural, "plural", "", "plural `name` of the resource; default: derived from the kind")
	return cmd
}

// handlerCommand returns a command for handlers. The type is the first argument, unless it
// is given.
func (a *adding) handlerCommand(use, short, long, example, given string, types ...string) *cobra.Command {
	words := 1
	if given == "" {
		words = 2
	}
	command := "gopf add " + strings.ReplaceAll(use, "NAME", "check")
	if given == "" {
		command = "gopf add " + strings.Fields(use)[0] + " " + types[0] + " check"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: exactly(words, "name the handler, as in '"+command+"'"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h := scaffold.Handler{Type: given, Name: args[len(args)-1], Kind: a.kind, Field: a.field, Every: a.every}
			if given == "" {
				h.Type = args[0]
				if !slices.Contains(types, h.Type) {
					return usagef("%q is not a type of handlers here; use %s", h.Type, strings.Join(types, ", "))
				}
			}
			if (h.Type == "field") != (h.Field != "") {
				return usagef("the type field needs --field, as in 'gopf add handler field scale --field spec.replicas', and the others do not have it")
			}
			if h.Type == "timer" && h.Every < time.Millisecond {
				return usagef("--every must be at least 1ms, not %s", h.Every)
			}
			p, err := scaffold.Load(a.folder)
			if err != nil {
				return err
			}
			change, err := p.AddHandler(h)
			return a.finish(cmd.OutOrStdout(), change, err)
		},
	}
	cmd.Flags().StringVar(&a.kind, "for", "", "`kind` of the objects, as in the Go code; default: the only one")
	return cmd
}

func (a *adding) newHandler() *cobra.Command {
	cmd := a.handlerCommand("handler TYPE NAME", "Add a handler of changes or of watch events, with a test",
		`Add a handler with a test. TYPE is one of

  create   called once for a new object
  update   called when an object has changed
  delete   called before an object is deleted; the deletion waits for it
  resume   called for existing objects when the operator starts
  field    called when one field appears, changes or disappears; see --field
  event    called for each watch event; nothing is recorded or retried

NAME is the id of the handler: its progress is stored on objects under this name.`,
		"  gopf add handler create provision\n  gopf add handler field scale --field spec.replicas --for Database", "",
		"create", "update", "delete", "resume", "field", "event")
	cmd.Flags().StringVar(&a.field, "field", "", "`path` of the field, such as spec.replicas")
	return cmd
}

func (a *adding) newTimer() *cobra.Command {
	cmd := a.handlerCommand("timer NAME", "Add a function that is called for each object at regular intervals, with a test",
		"Add a timer with a test. It is called for each object at regular intervals.", "  gopf add timer check --every 10m", "timer")
	cmd.Flags().DurationVar(&a.every, "every", time.Minute, "`time` between two calls")
	return cmd
}

func (a *adding) newDaemon() *cobra.Command {
	return a.handlerCommand("daemon NAME", "Add a function that runs as long as an object exists, with a test",
		"Add a daemon with a test. It runs in the background for each object, from its creation to\nits deletion.", "  gopf add daemon watch", "daemon")
}

func (a *adding) newWebhook() *cobra.Command {
	return a.handlerCommand("webhook TYPE NAME", "Add an admission handler that validates or changes objects, with a test",
		`Add an admission handler with a test. TYPE is one of

  validate   may deny that an object is created, changed or deleted
  mutate     may change an object before it is stored

The operator needs a server for reviews: set op.Settings.Admission.Server.`,
		"  gopf add webhook validate size", "", "validate", "mutate")
}

func (a *adding) newReconcile() *cobra.Command {
	return a.handlerCommand("reconcile NAME", "Add a function that declares the children of an object, with a test",
		`Add a reconcile handler with a test. It declares the children that an object should have,
and the operator creates, repairs and deletes them. The operator needs an identity:
gopf.New(gopf.Identity("databases.example.com")).`, "  gopf add reconcile children", "reconcile")
}

// exactly returns a check of the number of arguments.
func exactly(n int, advice string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s", advice)
		}
		return nil
	}
}

// finish prints or writes a change.
func (a *adding) finish(out io.Writer, c *scaffold.Change, err error) error {
	if err != nil {
		return err
	}
	if !a.print {
		if err := c.Write(); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.New)) {
		fmt.Fprintln(out, "+", name)
		if a.print {
			fmt.Fprintf(out, "\n%s\n", c.New[name])
		}
	}
	fmt.Fprintf(out, "~ %s: %s\n", c.Changed, c.Line)
	if !a.print {
		fmt.Fprint(out, "\nNext: gopf manifests, and go test ./...\n")
	}
	return nil
}
