package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// String formats the differences as text, one after another:
//
//	change spec.size: "1G" -> "2G"; remove spec.class: "fast"
func (d Diff) String() string {
	items := make([]string, len(d))
	for i, item := range d {
		items[i] = item.String()
	}
	return strings.Join(items, "; ")
}

// String formats the difference as text, with the values as JSON.
func (i Item) String() string {
	what := string(i.Op)
	if len(i.Path) > 0 {
		what += " " + jsonvalue.Path(i.Path).String()
	}
	switch i.Op {
	case Add:
		return what + ": " + text(i.New)
	case Remove:
		return what + ": " + text(i.Old)
	}
	return what + ": " + text(i.Old) + " -> " + text(i.New)
}

func text(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
