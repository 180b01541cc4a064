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
// does.
func Cut(message string) string {
	runes := []rune(message)
	if len(runes) <= longest {
		return message
	}
	head := longest/2 - 1
	tail := longest - head - len(ellipse)
	return string(runes[:head]) + ellipse + string(runes[len(runes)-tail:])
}

// fit limits a message to as many bytes as it may have characters, for servers that
// count bytes and reject longer messages. It does not change ASCII messages that Cut
// has shortened, and never splits a character.
func fit(message string) string {
	if len(message) <= longest {
		return message
	}
	head := longest/2 - 1
	tail := len(message) - (longest - head - len(ellipse))
	for head > 0 && !utf8.RuneStart(message[head]) {
		head--
	}
	for tail < len(message) && !utf8.RuneStart(message[tail]) {
		tail++
	}
	return message[:head] + ellipse + message[tail:]
}
