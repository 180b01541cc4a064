// Package pause reads and writes the annotation that pauses a single object. It is pure.
//
// The value may be a reason, "true", or the end of the pause with an optional reason:
// "until 2026-11-20T12:00:00Z: moving the data". Every value pauses: a typo must not
// mean that an operator changes an object that its user wants to keep as it is.
package pause

import (
	"strings"
	"time"
)

// Key is the annotation that pauses an object for all operators of this framework.
const Key = "gopf.dev/pause"

// name is the name of the annotation that pauses an object for one operator, after its
// prefix.
const name = "pause"

// KeyOf returns the annotation that pauses an object for the operator with the prefix of
// annotations.
func KeyOf(prefix string) string { return prefix + "/" + name }

// Pause is the pause of one object.
type Pause struct {
	Key       string    // the annotation
	Namespace string    // the namespace that has the annotation; "" means the object
	Until     time.Time // zero means no end
	Reason    string    // may be empty
	Problem   string    // why the value is unclear; the object is paused nonetheless
}

// Of returns the pause of an object with the annotations that is in effect now. nil means
// none. Of several, it is the one that ends last. prefixes are those of the operator's own
// annotations.
func Of(annotations map[string]any, prefixes []string, now time.Time) (found *Pause) {
	add := func(key string, own bool) {
		value, ok := annotations[key].(string)
		if !ok || own && strings.HasPrefix(strings.TrimSpace(value), "{") { // the record of a handler with this id
			return
		}
		p := Parse(value)
		p.Key = key
		if !p.Ended(now) && (found == nil || !found.Until.IsZero() && (p.Until.IsZero() || p.Until.After(found.Until))) {
			found = &p
		}
	}
	if len(annotations) == 0 {
		return nil
	}
	add(Key, false)
	for _, prefix := range prefixes {
		if key, has := own(annotations, prefix); has {
			add(key, true)
		}
	}
	return found
}

// Ended reports whether the end of the pause has come.
func (p *Pause) Ended(now time.Time) bool { return !p.Until.IsZero() && !p.Until.After(now) }

// Where names the annotation in messages.
func (p *Pause) Where() string {
	if p.Namespace != "" {
		return p.Key + " of the namespace " + p.Namespace
	}
	return p.Key
}

// own looks for the annotation of the prefix without an allocation if there is none.
func own(annotations map[string]any, prefix string) (key string, has bool) {
	for key := range annotations {
		if len(key) == len(prefix)+1+len(name) && strings.HasPrefix(key, prefix) && key[len(prefix)] == '/' && strings.HasSuffix(key, name) {
			return key, true
		}
	}
	return "", false
}

// Parse reads the value of the annotation.
func Parse(value string) Pause {
	text := strings.TrimSpace(value)
	end, ok := strings.CutPrefix(text, "until ")
	switch {
	case strings.EqualFold(text, "true"), text == "":
		return Pause{}
	case strings.EqualFold(text, "false"):
		return Pause{Problem: "every value pauses the object; remove the annotation to continue"}
	case !ok:
		return Pause{Reason: text}
	}
	moment, reason, _ := strings.Cut(end, ": ")
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(moment))
	// Pauses are compared, and two times with equal offsets have different zones.
	until = until.UTC()
	if err != nil || until.IsZero() || until.Year() < 0 || until.Year() > 9999 { // JSON has no such times, and zero means no end
		return Pause{Reason: text, Problem: "the end of the pause is not a time like 2026-11-20T12:00:00Z, so the pause has no end"}
	}
	return Pause{Until: until, Reason: strings.TrimSpace(reason)}
}

// Format returns the value of the annotation. A zero until means no end.
func Format(until time.Time, reason string) string {
	switch {
	case until.IsZero() && reason == "":
		return "true"
	case until.IsZero():
		return reason
	case reason == "":
		return "until " + until.UTC().Format(time.RFC3339)
	}
	return "until " + until.UTC().Format(time.RFC3339) + ": " + reason
}
