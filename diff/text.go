package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/jsonvalue"
)

// longText is the size of a text, in bytes, above which no more differences are added.
const longText = 64 << 10

// String formats the differences as text, one after another:
//
//	change spec.size: "1G" -> "2G"; remove spec.class: "fast"
//
// When the text exceeds 64 KiB, it ends with the number of the differences that are left out:
//
//	change spec.size: "1G" -> "2G"; and 1200 more
func (d Diff) String() string {
	var b strings.Builder
	for i, item := range d {
		if i > 0 {
			b.WriteString("; ")
		}
		if b.Len() > longText {
			fmt.Fprintf(&b, "and %d more", len(d)-i)
			break
		}
		b.WriteString(item.String())
	}
	return b.String()
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
