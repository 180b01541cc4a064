package insight

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/explain"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/terminal"
)

// Plan has the next steps of an operator with objects. docs/operations.md documents the JSON format.
type Plan struct {
	Version int             `json:"version"`
	Seen    int             `json:"seen"`    // objects
	Objects []PlannedObject `json:"objects"` // with something to do
}

// PlannedObject is the plan of one object.
type PlannedObject struct {
	Object   explain.Object `json:"object"`
	Next     string         `json:"next"` // see process.Next
	Reason   string         `json:"reason"`
	Summary  string         `json:"summary"`
	Calls    []PlannedCall  `json:"calls,omitempty"`
	Patches  []PlannedPatch `json:"patches,omitempty"`
	Children []PlannedChild `json:"children,omitempty"`
	Problems []string       `json:"problems,omitempty"` // why a part could not be planned
}

// PlannedCall is a change handler that would be called. A plan does not call it.
type PlannedCall struct {
	Handler  string     `json:"handler"`
	Where    string     `json:"where"`
	Due      *time.Time `json:"due,omitempty"` // nil means now
	Attempts int        `json:"attempts,omitempty"`
}

// PlannedPatch are changes of the object itself by a reconcile handler.
type PlannedPatch struct {
	Handler string         `json:"handler"`
	Fields  map[string]any `json:"fields"` // a merge patch
}

// PlannedChild is an action for a child.
type PlannedChild struct {
	Handler string           `json:"handler"`
	Action  string           `json:"action"` // create, change, repair, recreate, delete, wait or refuse
	Child   explain.Child    `json:"child"`
	Reason  string           `json:"reason"`
	Diff    []explain.Change `json:"diff,omitempty"`    // by a dry run of the API server
	More    int              `json:"more,omitempty"`    // changes above the limit of a report
	Refused string           `json:"refused,omitempty"` // the error of the dry run
}

// todo reports whether there is anything to do for the object.
func (o *PlannedObject) todo() bool {
	switch process.Next(o.Next) {
	case process.NextCall, process.NextWait, process.NextFinish, process.NextAddFinalizer, process.NextRemoveFinalizer, process.NextSend, process.NextTidy, process.NextDeleteChildren:
		return true
	}
	return len(o.Calls)+len(o.Patches)+len(o.Children)+len(o.Problems) > 0
}

// Fails reports whether the plan has an action of a class: "change" is anything to do,
// "delete" a deleted or recreated child, "recreate" a recreated child.
func (p *Plan) Fails(class string) bool {
	if class == "change" {
		return len(p.Objects) > 0
	}
	return slices.ContainsFunc(p.Objects, func(o PlannedObject) bool {
		return slices.ContainsFunc(o.Children, func(c PlannedChild) bool {
			return c.Action == "recreate" || c.Action == "delete" && class == "delete"
		})
	})
}

// Problems returns the number of objects that could not be planned as a whole.
func (p *Plan) Problems() (n int) {
	for _, o := range p.Objects {
		if len(o.Problems) > 0 {
			n++
		}
	}
	return n
}

func compare(a, b string) int { return strings.Compare(a, b) }

func (p *Plan) sort() {
	slices.SortFunc(p.Objects, func(a, b PlannedObject) int {
		return cmp.Or(compare(a.Object.Kind, b.Object.Kind), compare(a.Object.Namespace, b.Object.Namespace), compare(a.Object.Name, b.Object.Name))
	})
}

// Write prints the plan. grouped prints the shapes of the changes with examples, instead of
// each object.
func (p *Plan) Write(to io.Writer, grouped bool) error {
	var out strings.Builder
	if grouped {
		p.writeGroups(&out)
	} else {
		for _, o := range p.Objects {
			o.write(&out)
		}
	}
	fmt.Fprintf(&out, "%d of %d objects have something to do\n", len(p.Objects), p.Seen)
	_, err := io.WriteString(to, out.String())
	return err
}

// write prints the plan of one object.
func (o *PlannedObject) write(out *strings.Builder) {
	if o.Summary == "" {
		o.Summary = o.Object.Kind + " " + strings.TrimPrefix(o.Object.Namespace+"/"+o.Object.Name, "/")
	}
	fmt.Fprintln(out, terminal.Line(o.Summary))
	for _, c := range o.Calls {
		when := "would be called"
		if c.Due != nil {
			when += " at " + c.Due.Format(time.RFC3339)
		}
		fmt.Fprintf(out, "  %s: %s  %s\n", c.Handler, when, c.Where)
	}
	for _, p := range o.Patches {
		fields, _ := json.Marshal(p.Fields) // it was JSON
		fmt.Fprintf(out, "  %s: patches the object: %s\n", p.Handler, cutLine(string(fields)))
	}
	for _, c := range o.Children {
		fmt.Fprintf(out, "  %s: %s %s %s: %s\n", c.Handler, c.Action, cutLine(c.Child.Kind), cutLine(c.Child.Name), cutLine(c.Reason))
		for _, d := range c.Diff {
			fmt.Fprintf(out, "    %s\n", d.Text())
		}
		if c.More > 0 {
			fmt.Fprintf(out, "    and %d more changes\n", c.More)
		}
		if c.Refused != "" {
			fmt.Fprintf(out, "    the API server refuses it: %s\n", cutLine(c.Refused))
		}
	}
	for _, problem := range o.Problems {
		fmt.Fprintf(out, "  not planned: %s\n", cutLine(problem))
	}
}

// listIndex is an index of a list in a path.
var listIndex = regexp.MustCompile(`\[[0-9]+\]|\.[0-9]+(\.|$)`)

// shape returns the work on an object without names and values. Objects with the
// same work have the same shape.
func (o *PlannedObject) shape() string {
	var parts []string
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	for _, c := range o.Calls {
		add("call %s", c.Handler)
	}
	for _, p := range o.Patches {
		add("patch by %s", p.Handler)
	}
	for _, c := range o.Children {
		var paths []string
		for _, d := range c.Diff {
			if path := listIndex.ReplaceAllString(d.Path, "[]$1"); path != "" && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		slices.Sort(paths)
		add("%s", strings.TrimSpace(c.Action+" "+c.Child.Kind+" "+strings.Join(paths, " ")))
		if c.Refused != "" {
			add("%s refused", c.Child.Kind)
		}
	}
	if len(o.Problems) > 0 {
		add("not planned")
	}
	if len(parts) == 0 {
		add("%s", o.Next)
	}
	slices.Sort(parts)
	return o.Object.Kind + ": " + strings.Join(parts, ", ")
}

// writeGroups prints the shapes of the work, the most frequent first, with up to 3 names.
func (p *Plan) writeGroups(out *strings.Builder) {
	groups := map[string][]string{}
	for _, o := range p.Objects {
		shape := o.shape()
		groups[shape] = append(groups[shape], strings.TrimPrefix(o.Object.Namespace+"/"+o.Object.Name, "/"))
	}
	shapes := make([]string, 0, len(groups))
	for shape := range groups {
		shapes = append(shapes, shape)
	}
	slices.SortFunc(shapes, func(a, b string) int { return cmp.Or(len(groups[b])-len(groups[a]), compare(a, b)) })
	for _, shape := range shapes {
		names, more := groups[shape], ""
		if len(names) > 3 {
			names, more = names[:3], ", …"
		}
		fmt.Fprintf(out, "%6d  %s  (%s%s)\n", len(groups[shape]), terminal.Line(shape), strings.Join(names, ", "), more)
	}
}
