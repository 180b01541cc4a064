package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gopf.dev/gopf"
)

func TestAllFlagsAndVariablesAreInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	all := command(gopf.New(), nil).Commands()
	for _, cmd := range all {
		all = append(all, cmd.Commands()...)
	}
	for _, cmd := range all {
		if cmd.HasSubCommands() || cmd.Hidden {
			continue
		}
		if strings.Contains("completion help version", cmd.Name()) {
			continue
		}
		checked := 0
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			wants := []string{"`--" + f.Name + "`"}
			if f.Shorthand != "" {
				wants = append(wants, "`-"+f.Shorthand+"`")
			}
			if names := variables(cmd, f); len(names) > 0 && f.Name != "module" {
				wants = append(wants, "`"+names[0]+"`")
			}
			for _, want := range wants {
				if !strings.Contains(string(page), want) {
					t.Errorf("docs/cli.md does not mention %s of %s", want, cmd.Name())
				}
			}
			checked++
		})
		if checked < 10 && cmd.Name() != "policy" && cmd.Annotations[withoutVariables] == "" {
			t.Errorf("%s has only %d flags", cmd.Name(), checked)
		}
	}
}
