package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The API server aborts expressions that cost too much and then refuses the request.
// Larger objects are therefore left to the webhook, which applies the same rule without
// these limits: see [Own].
const (
	maxMembers     = 100 // members at the top level of an object
	maxFinalizers  = 50
	maxAnnotations = 500
	maxStatusKeys  = 500
)

// Names of the match conditions in a configuration. A webhook is called if all of
// its conditions are true.
const (
	notReleased = "not-only-finalizers-removed-in-deletion"
	notOwn      = "not-only-own-records"
)

// Conditions returns the match conditions of a webhook. With them, the API server does
// not call it for the updates that [Own] describes. Without an account there is no
// condition about the operator's own writes.
//
// They use only features of API server version 1.28.
func (o Own) Conditions() []any {
	conditions := []any{map[string]any{"name": notReleased, "expression": not(releasedExpression())}}
	if o.Account != "" {
		conditions = append(conditions, map[string]any{"name": notOwn, "expression": not(o.coversExpression())})
	}
	return conditions
}

func not(terms []string) string { return "!(" + strings.Join(terms, " && ") + ")" }

// releasedExpression is [released] in CEL, term by term.
func releasedExpression() []string {
	metadata := []string{"finalizers", "managedFields"}
	return slices.Concat(
		[]string{
			"request.operation == 'UPDATE'",
			"(!has(request.subResource) || request.subResource == '')",
			"has(oldObject.metadata.deletionTimestamp)",
			"has(oldObject.metadata.finalizers)",
			fmt.Sprintf("size(oldObject.metadata.finalizers) <= %d", maxFinalizers),
			"size(" + finalizersOf("object") + ") < size(oldObject.metadata.finalizers)",
			"oldObject.metadata.finalizers.filter(f, f in " + finalizersOf("object") + ") == " + finalizersOf("object"),
		},
		equalMembers("oldObject", "object", in("metadata"), maxMembers),
		equalMembers("oldObject.metadata", "object.metadata", in(metadata...), maxMembers),
	)
}

// coversExpression is [Own.covers] in CEL, term by term. The account comes first:
// the writes of other accounts then cost nothing.
func (o Own) coversExpression() []string {
	terms := []string{
		"request.userInfo.username == " + text(o.Account),
		"request.operation == 'UPDATE'",
		"(!has(request.subResource) || request.subResource in ['', 'status'])",
	}
	for _, object := range []string{"object", "oldObject"} {
		terms = append(terms,
			fmt.Sprintf("size(%s) <= %d", finalizersOf(object), maxFinalizers),
			fmt.Sprintf("(!has(%s.status) || type(%s.status) == map)", object, object))
	}
	own := "f != " + text(o.Finalizer)
	for _, former := range o.Former {
		own += " && f != " + text(former)
	}
	own = ".filter(f, " + own + ")"
	metadata := []string{"annotations", "finalizers", "managedFields", "generation"}
	return slices.Concat(
		terms,
		[]string{finalizersOf("oldObject") + own + " == " + finalizersOf("object") + own},
		equalMembers("oldObject", "object", in("metadata", "status"), maxMembers),
		equalMembers("oldObject.metadata", "object.metadata", in(metadata...), maxMembers),
		equalMembers(mapAt("oldObject.metadata.annotations"), mapAt("object.metadata.annotations"), o.prefixedExpression, maxAnnotations),
		equalMembers(mapAt("oldObject.status"), mapAt("object.status"), in(o.Keys...), maxStatusKeys),
	)
}

// equalMembers is [equalExcept] in CEL, for objects of a limited size.
func equalMembers(before, after string, except func(key string) string, limit int) []string {
	return []string{
		fmt.Sprintf("size(%s) <= %d", before, limit),
		fmt.Sprintf("size(%s) <= %d", after, limit),
		fmt.Sprintf("%[2]s.all(k, %[3]s || (k in %[1]s && %[2]s[k] == %[1]s[k]))", before, after, except("k")),
		fmt.Sprintf("%[1]s.all(k, %[3]s || k in %[2]s)", before, after, except("k")),
	}
}

// in is [is] in CEL.
func in(keys ...string) func(string) string {
	quoted := make([]string, len(keys))
	for i, key := range keys {
		quoted[i] = text(key)
	}
	return func(key string) string { return key + " in [" + strings.Join(quoted, ", ") + "]" }
}

// prefixedExpression is [Own.prefixed] in CEL.
func (o Own) prefixedExpression(key string) string {
	terms := []string{"false"}
	for _, p := range o.Prefixes {
		terms = append(terms, key+".startsWith("+text(p+"/")+")")
	}
	return "(" + strings.Join(terms, " || ") + ")"
}

func finalizersOf(object string) string {
	return fmt.Sprintf("(has(%[1]s.metadata.finalizers) ? %[1]s.metadata.finalizers : [])", object)
}

func mapAt(path string) string { return fmt.Sprintf("(has(%[1]s) ? %[1]s : {})", path) }

// text returns a string literal of CEL, which has the same escapes as Go.
func text(s string) string { return strconv.QuoteToASCII(s) }
