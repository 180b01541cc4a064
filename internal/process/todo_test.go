package process

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

type tree = map[string]any

// partOf returns a part with a merge patch and edits.
func partOf(handler string, fields tree, edits ...func(tree)) execute.Part {
	part := execute.Part{Handler: handler}
	part.Patch.Merge(fields)
	for _, edit := range edits {
		part.Patch.Edit(edit)
	}
	return part
}

func TestAPartIsSplitByTheStatus(t *testing.T) {
	fields := tree{"metadata": tree{"name": "x"}, "spec": tree{"a": "1"}, "status": tree{"old": "1"}}
	edit := func(o tree) {
		o["spec"].(tree)["edited"] = "yes"
		o["status"].(tree)["edited"] = "yes"
	}
	for name, c := range map[string]struct {
		part         execute.Part
		main, status tree
	}{
		"no changes":       {partOf("h", nil), nil, nil},
		"main only":        {partOf("h", tree{"spec": tree{"a": "2"}}), tree{"spec": tree{"a": "2"}}, nil},
		"status only":      {partOf("h", tree{"status": tree{"h": "r"}}), nil, tree{"status": tree{"h": "r"}}},
		"both":             {partOf("h", tree{"spec": tree{"a": "2"}, "status": tree{"h": "r"}}), tree{"spec": tree{"a": "2"}}, tree{"status": tree{"h": "r"}}},
		"an edit of both":  {partOf("h", nil, edit), tree{"spec": tree{"edited": "yes"}}, tree{"status": tree{"edited": "yes"}}},
		"a patch and edit": {partOf("h", tree{"spec": tree{"a": "2"}}, edit), tree{"spec": tree{"a": "2", "edited": "yes"}}, tree{"status": tree{"edited": "yes"}}},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := object.FromMap(fields)
			if err != nil {
				t.Fatal(err)
			}
			main, status := mainOnly(c.part), statusOnly(c.part, body)
			if main.Handler != "h" || status.Handler != "h" {
				t.Errorf("the handlers are %q and %q", main.Handler, status.Handler)
			}
			for part, want := range map[*execute.Part]tree{&main: c.main, &status: c.status} {
				if got := part.Patch.Fold(body.Map); len(got)+len(want) > 0 && !cmp.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
}

// An edit that creates the status must leave no trace of it.
func TestMainOnlyUndoesTheCreationOfAStatus(t *testing.T) {
	part := mainOnly(partOf("h", nil, func(o tree) { o["status"], o["data"] = tree{"a": "1"}, tree{"b": "2"} }))
	fields := tree{"metadata": tree{"name": "x"}}
	for _, edit := range part.Patch.Edits() {
		edit(fields)
	}
	if diff := cmp.Diff(tree{"metadata": tree{"name": "x"}, "data": tree{"b": "2"}}, fields); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestOutsideOfStatus(t *testing.T) {
	for name, c := range map[string]struct {
		patches []tree
		want    bool
	}{
		"no changes":              {nil, false},
		"an empty patch":          {[]tree{{}}, false},
		"the status":              {[]tree{{"status": tree{}}}, false},
		"the spec":                {[]tree{{"spec": tree{}}}, true},
		"both in one patch":       {[]tree{{"spec": tree{}, "status": tree{}}}, true},
		"both in several patches": {[]tree{{"status": tree{}}, {"spec": tree{}}}, true},
	} {
		var todo []progress.Todo
		for _, p := range c.patches {
			todo = append(todo, progress.Todo{Handler: "h", Patch: p})
		}
		if got := outsideOfStatus(todo); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestTodoIsSplitOnlyIfRecordsAreInTheStatus(t *testing.T) {
	body, err := object.FromMap(tree{"metadata": tree{"name": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	parts := []execute.Part{
		partOf("both", tree{"spec": tree{"a": "1"}, "status": tree{"both": "r"}}),
		partOf("main", tree{"spec": tree{"b": "2"}}),
		partOf("status", tree{"status": tree{"status": "r"}}),
	}
	for name, c := range map[string]struct {
		storage      storage.Progress
		main, status []string
	}{
		"in annotations": {storage.NewAnnotationProgress("my.op"), []string{"both", "main", "status"}, nil},
		"in the status":  {storage.NewStatusProgress("mine"), []string{"both", "main"}, []string{"both", "status"}},
	} {
		p := newKind(newCluster(), nil)
		p.Resource.Subresources, p.Config.Progress = []string{"status"}, c.storage
		got := p.newTodo(parts, body)
		if diff := cmp.Diff([][]string{c.main, c.status}, [][]string{handlersOf(got.main), handlersOf(got.status)}); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
		got.drop("both", "other")
		if name == "in the status" && !cmp.Equal(handlersOf(got.status), []string{"status"}) {
			t.Errorf("after a refusal: %q", handlersOf(got.status))
		}
	}
}

func handlersOf(parts []execute.Part) (ids []string) {
	for _, p := range parts {
		ids = append(ids, p.Handler)
	}
	return ids
}

func TestTheSoonerDelayCounts(t *testing.T) {
	none, now, later := delay{}, handler.Some(time.Duration(0)), handler.Some(time.Minute)
	for _, c := range []struct{ a, b, want delay }{
		{none, none, none}, {none, later, later}, {later, none, later}, {now, later, now}, {later, now, now}, {none, now, now}, {now, none, now},
	} {
		if got := sooner(c.a, c.b); got != c.want {
			t.Errorf("%+v and %+v: got %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}

func TestErrorDelaysEndWithTheLastOne(t *testing.T) {
	p := &Processor{Config: Config{ErrorDelays: []time.Duration{1, 2, 5}}}
	for failures, want := range map[int]time.Duration{0: 1, 1: 2, 2: 5, 3: 5, 1000: 5} {
		if got := p.errorDelay(failures); got != want {
			t.Errorf("after %d failures: got %d, want %d", failures, got, want)
		}
	}
	if got := (&Processor{}).errorDelay(3); got != 0 {
		t.Errorf("without delays: got %v", got)
	}
}
