package migrate

import (
	"fmt"
	"strings"
)

// Rates returns the numbers of the report, a line for each.
func (r *Report) Rates() string {
	var b strings.Builder
	for _, x := range []struct {
		what      string
		done, all int
	}{
		{"decorators", r.Translated, r.Decorators},
		{"their keyword arguments", r.Kept, r.Keywords},
		{"arguments of functions", r.Mapped, r.Arguments},
		{"settings", r.Set, r.Settings},
		{"functions, as a whole", r.Whole, r.Bodies},
		{"statements with Go code", r.Idioms, r.Statements},
	} {
		if x.all > 0 {
			fmt.Fprintf(&b, "%-24s %d of %d (%d %%)\n", x.what, x.done, x.all, 100*x.done/x.all)
		}
	}
	return b.String()
}

// page returns the report as a page.
func (o *operator) page() string {
	r := o.report
	var b strings.Builder
	fmt.Fprintf(&b, "# Migration of %s from Kopf\n\nTranslated:\n\n", o.name)
	for line := range strings.Lines(r.Rates()) {
		b.WriteString("    " + line)
	}
	b.WriteString("\nA function that is not translated as a whole has its Python code as a comment, with Go code after the lines that are clear. It returns an error when it is\ncalled: the handler is retried, and never counts as done.\n")
	b.WriteString("\n## Handlers\n\n| id in the records | resource | decorators | source |\n|---|---|---|---|\n")
	for _, d := range o.joined() {
		var decorators []string
		for _, h := range d.all {
			decorators = append(decorators, h.decorator)
		}
		h := d.first
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", h.stored(), cell(h.resource), strings.Join(decorators, ", "), h.where())
	}
	section(&b, "Left to do", r.Left)
	section(&b, "To know", r.Notes)
	b.WriteString("\n## Next\n\n")
	if o.elsewhere {
		b.WriteString("1. The state is not only in annotations. Check `op.Settings.Persistence` first, and add a test with exported objects.\n")
	} else {
		b.WriteString("1. Run the tests. They show that objects and records of the Python operator cause no calls of handlers.\n")
	}
	b.WriteString("2. Translate the functions, from the top of the list above. `gopf types crd.yaml` writes Go types for your custom resources.\n" +
		"3. Export the objects of your cluster and test with them; see \"Moving a running operator\" in the page \"Coming from Kopf\" of the manual.\n" +
		"4. Stop the Python operator, or let both take part in one peering, and start this one.\n\n" +
		"Keep the ids, and keep the state in annotations until you no longer need to go back.\n")
	return b.String()
}

func cell(r resource) string {
	switch {
	case r.name != "":
		return "`" + r.name + "`"
	case r.code != "":
		return "`" + strings.ReplaceAll(r.code, "|", "\\|") + "`"
	}
	return "–"
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	b.WriteString("\n## " + title + "\n\n")
	for _, l := range lines {
		b.WriteString("* " + oneLine(l) + "\n")
	}
}
