package recorder

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/storage"
)

// Body returns the event as a Kubernetes object.
func (c Config) Body(e Event, now time.Time) map[string]any {
	e = e.cut()
	namespace := cmp.Or(e.About.Namespace, c.Namespace, "default")
	involved := Reference(e.About)
	involved["namespace"] = namespace
	moment := storage.FormatTime(now)
	return map[string]any{
		"metadata": map[string]any{"namespace": namespace, "generateName": c.NamePrefix},
		"action":   "Action?",
		"type":     e.Type, "reason": e.Reason, "message": e.Message,
		"reportingComponent": c.Component, "reportingInstance": c.Instance,
		"source":         map[string]any{"component": c.Component},
		"involvedObject": involved,
		"firstTimestamp": moment, "lastTimestamp": moment, "eventTime": moment,
	}
}

// Reference returns the fields that identify an object, without empty ones.
func Reference(i object.Identity) map[string]any {
	ref := map[string]any{}
	for key, value := range map[string]string{
		"apiVersion": i.APIVersion, "kind": i.Kind, "name": i.Name, "uid": i.UID, "namespace": i.Namespace,
	} {
		if value != "" {
			ref[key] = value
		}
	}
	return ref
}

// The API server refuses events with longer reasons. Types have no limit there.
const (
	longestReason = 128
	longestType   = 63
)

// cut returns the event with texts that are not too long.
func (e Event) cut() Event {
	e.Type, e.Reason, e.Message = clip(e.Type, longestType), clip(e.Reason, longestReason), Cut(e.Message)
	return e
}

// copied returns the event with its own texts. Those of handlers may be parts of texts of an
// object, which would stay in memory with them.
func (e Event) copied() Event {
	e.Type, e.Reason, e.Message = strings.Clone(e.Type), strings.Clone(e.Reason), strings.Clone(e.Message)
	return e
}

// clip returns at most the first n bytes of a text. It never splits a character, and does not
// keep the whole text in memory.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}

// longest is the maximum number of characters of a message. ellipse replaces the middle
// of longer ones.
const (
	longest = 1024
	ellipse = "..."
)

// Cut shortens a message that is too long for an event, by removing its middle, as Kopf
// does. It reads no more of the message than it keeps: a message may quote an object.
func Cut(message string) string {
	if len(message) <= longest || start(message, longest) == len(message) {
		return message
	}
	head := longest/2 - 1
	tail := longest - head - len(ellipse)
	return message[:start(message, head)] + ellipse + message[end(message, tail):]
}

// start returns the length of the first n characters, in bytes. Bytes that are not UTF-8 are
// characters.
func start(s string, n int) (bytes int) {
	for ; n > 0 && bytes < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[bytes:])
		bytes += size
	}
	return bytes
}

// end returns where the last n characters begin.
func end(s string, n int) int {
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return at
}
