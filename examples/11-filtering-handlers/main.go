// Command 11-filtering-handlers selects the objects of each handler with filters.
package main

import (
	"context"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/cli"
)

func main() {
	op := gopf.New()
	objects := op.Resource("kopfexamples")

	label := func(m gopf.Matcher) *gopf.Resource[gopf.Unstructured] { return objects.WithLabel("somelabel", m) }
	label(gopf.Is("somevalue")).OnCreate("create_with_labels_matching", say("Label is matching."))
	label(gopf.Present).OnCreate("create_with_labels_present", say("Label is present."))
	label(gopf.Matching(isLong)).When(hasField).OnCreate("create_with_labels_callback_matching", say("Label callback matching."))
	objects.WithLabel("nonexistent", gopf.Absent).OnCreate("create_with_labels_absent", say("Label is absent."))

	annotation := func(m gopf.Matcher) *gopf.Resource[gopf.Unstructured] {
		return objects.WithAnnotation("someannotation", m)
	}
	annotation(gopf.Is("somevalue")).OnCreate("create_with_annotations_matching", say("Annotation is matching."))
	annotation(gopf.Present).OnCreate("create_with_annotations_present", say("Annotation is present."))
	annotation(gopf.Not(gopf.Matching(isLong))).OnCreate("create_with_annotations_callback_matching", say("Annotation callback mismatch."))
	objects.WithAnnotation("nonexistent", gopf.Absent).OnCreate("create_with_annotations_absent", say("Annotation is absent."))

	objects.When(hasItems).OnCreate("create_with_filter_satisfied", say("Filter satisfied."))
	objects.When(isGone).OnCreate("create_with_filter_not_satisfied", say("Filter not satisfied."))

	// Field declares handlers for one field: the path is appended to their ids, and
	// updates call them only if the field changed. WithField only checks the value.
	field := objects.Field("spec.field")
	field.Value(gopf.Is("value")).OnCreate("create_with_field_value_satisfied", say("Field value is satisfied."))
	field.Value(gopf.Is("something-else")).OnCreate("create_with_field_value_not_satisfied", say("Field value is not satisfied."))
	field.Value(gopf.Present).OnCreate("create_with_field_presence_satisfied", say("Field presence is satisfied."))
	objects.Field("spec.nonexistent").Value(gopf.Present).
		OnCreate("create_with_field_presence_not_satisfied", say("Field presence is not satisfied."))
	field.Changed(gopf.Is("value"), gopf.Is("changed")).
		OnUpdate("update_with_field_change_satisfied", say("Field change is satisfied."))

	// A daemon stops when its object no longer matches.
	field.Value(gopf.Is("value")).Daemon("daemon_with_field", accompany)

	cli.Main(op)
}

// isLong is a matcher for the value of a label or an annotation.
func isLong(value any, present bool) bool {
	text, ok := value.(string)
	return present && ok && len(text) > 5
}

// hasField, hasItems and isGone are predicates on whole objects. If a handle has
// several filters, all of them must match.
func hasField(s *gopf.Candidate[gopf.Unstructured]) bool {
	_, found := gopf.ValueAt[string](s, "spec.field")
	return found
}

func hasItems(s *gopf.Candidate[gopf.Unstructured]) bool {
	items, _ := gopf.ValueAt[[]any](s, "spec.items")
	return len(items) > 0
}

func isGone(s *gopf.Candidate[gopf.Unstructured]) bool { return s.Object.GetDeletionTimestamp() != nil }

// say returns a handler that logs a message.
func say(message string) gopf.ChangeFunc[gopf.Unstructured] {
	return func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		c.Log.Info(message)
		return nil
	}
}

func accompany(ctx context.Context, d *gopf.Daemon[gopf.Unstructured]) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		d.Log.Info("Field daemon is satisfied.")
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}
