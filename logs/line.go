package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/terminal"
)

// line is a log record with its parts separated.
type line struct {
	time    time.Time
	level   slog.Level
	logger  string
	message string
	object  []slog.Attr
	attrs   []slog.Attr
}

// isBlock reports whether the value of an attribute has several lines, such as stack traces
// and manifests. Text formats print it below the line.
func isBlock(key string) bool { return key == "stack" || key == "manifest" }

func (l line) text(o Options) []byte {
	var b bytes.Buffer
	paint := func(colour, text string) string {
		if o.Colour {
			return colour + text + reset
		}
		return text
	}
	switch o.Format {
	case Full:
		level := paint(colour(l.level), fmt.Sprintf("[%-8.8s]", levelName(l.level)))
		fmt.Fprintf(&b, "[%s] %-20.20s %s ", l.time.Format("2006-01-02 15:04:05,000"), l.loggerName(), level)
	case Short:
		level := paint(colour(l.level), fmt.Sprintf("%-7.7s", levelName(l.level)))
		fmt.Fprintf(&b, "%s %s ", paint(faint, l.time.Format("15:04:05")), level)
	}
	if prefix := l.prefix(o); prefix != "" {
		b.WriteString(paint(faint, escape(prefix)) + " ")
	}
	b.WriteString(escape(cut(l.message, longestText)))
	var blocks []string
	for _, a := range l.attrs {
		if isBlock(a.Key) {
			blocks = append(blocks, strings.TrimRight(a.Value.String(), "\n"))
			continue
		}
		l.appendText(&b, "", a)
	}
	for _, block := range blocks {
		b.WriteString("\n" + escapeLines(cut(block, longestBlock)))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func (l line) loggerName() string {
	switch {
	case l.logger != "":
		return l.logger
	case l.object != nil:
		return "gopf.objects"
	}
	return "gopf"
}

// appendText writes an attribute, unless the message already contains its value.
func (l line) appendText(b *bytes.Buffer, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		for _, inner := range value.Group() {
			l.appendText(b, group+a.Key+".", inner)
		}
		return
	}
	text, isJSON := textOf(value)
	if text != "" && strings.Contains(l.message, "'"+text+"'") {
		return
	}
	text = cut(text, longestText)
	if !isJSON && mustQuote(text) {
		text = strconv.Quote(text)
	}
	fmt.Fprintf(b, " %s=%s", escape(group+a.Key), escape(text))
}

// mustQuote reports whether a text needs quotes. Without them, the text of an object could
// forge other attributes, or look like a structured value.
func mustQuote(text string) bool {
	return text == "" || strings.ContainsAny(text, " \t\n\"=") || text[0] == '{' || text[0] == '['
}

// textOf returns a value as text. isJSON means that the text is the JSON of a structured
// value.
func textOf(v slog.Value) (text string, isJSON bool) {
	if v.Kind() != slog.KindAny {
		return v.String(), false
	}
	switch x := v.Any().(type) {
	case error:
		return x.Error(), false
	case fmt.Stringer:
		return x.String(), false
	}
	if text := reflect.ValueOf(v.Any()); text.Kind() == reflect.String {
		return text.String(), false // of a named string type
	}
	return string(jsonOf(v)), true
}

// prefix returns the name of the object of the line. It is empty if there is none, or if
// lines have no prefix.
func (l line) prefix(o Options) string {
	if !o.Prefix {
		return ""
	}
	var namespace, name string
	for _, a := range l.object {
		switch a.Key {
		case "namespace":
			namespace = cut(a.Value.String(), longestName)
		case "name":
			name = cut(a.Value.String(), longestName)
		}
	}
	switch {
	case name == "":
		return ""
	case namespace == "":
		return "[" + name + "]"
	}
	return "[" + namespace + "/" + name + "]"
}

func (l line) json(o Options) []byte {
	message := cut(l.message, longestText)
	if prefix := l.prefix(o); prefix != "" {
		message = prefix + " " + message
	}
	var b bytes.Buffer
	field := func(key string, value []byte) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.Write(marshal(key))
		b.WriteString(": ")
		b.Write(value)
	}
	field("message", marshal(message))
	for _, a := range l.attrs {
		limit := longestText
		if isBlock(a.Key) {
			limit = longestBlock
		}
		value := jsonOf(a.Value)
		if len(value) > limit {
			text, _ := textOf(a.Value.Resolve())
			value = marshal(cut(text, limit))
		}
		field(a.Key, value)
	}
	field("timestamp", marshal(l.time.UTC().Format("2006-01-02T15:04:05.000000-07:00")))
	if l.object != nil {
		field(o.RefKey, l.reference())
	}
	field("severity", marshal(severity(l.level)))
	return []byte("{" + terminal.JSON(b.String()) + "}\n") // people also read these lines in terminals
}

// reference returns the reference to the object of the line. An empty namespace is null.
func (l line) reference() []byte {
	fields := map[string]any{}
	for _, a := range l.object {
		fields[a.Key] = cut(a.Value.String(), longestName)
		if a.Key == "namespace" && a.Value.String() == "" {
			fields[a.Key] = nil
		}
	}
	text, _ := jsonvalue.Encode(fields) // texts have JSON
	return text
}

func jsonOf(v slog.Value) []byte {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		fields := map[string]json.RawMessage{}
		for _, a := range v.Group() {
			fields[a.Key] = jsonOf(a.Value)
		}
		return marshal(fields)
	case slog.KindDuration, slog.KindTime:
		return marshal(v.String())
	}
	if err, ok := v.Any().(error); ok {
		return marshal(err.Error())
	}
	if jsonvalue.Extensive(v.Any(), manyParts) {
		if start, ok := jsonvalue.Head(v.Any(), longestBlock+1); ok {
			return start
		}
	}
	return marshal(v.Any())
}

// manyParts is the size of a value, in values and bytes of texts, above which only the start of its
// JSON is encoded. Handlers log parts of objects, and clients of the cluster choose their size: the
// JSON of a list of 250,000 structs took 312 MB for a line of 8 KiB.
const manyParts = 64 << 10

func marshal(v any) []byte {
	encode := jsonvalue.Marshal
	if _, ok := v.(string); ok {
		encode = jsonvalue.Encode // takes a tenth of the time for texts
	}
	text, err := encode(v)
	if err != nil {
		return marshal(fmt.Sprintf("%+v", v))
	}
	return text
}
