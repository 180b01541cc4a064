package registry

import "testing"

func TestHandlersThatDependOnDeletionsExcludeASelection(t *testing.T) {
	for name, c := range map[string]struct {
		handler Handler
		fits    bool
	}{
		"no selection":           {Handler{Family: Background, Mandatory: true}, true},
		"a handler of changes":   {Handler{Family: Changes, Select: "a=b"}, true},
		"a handler of deletions": {Handler{Family: Changes, Select: "a=b", Mandatory: true}, false},
		"a daemon":               {Handler{Family: Background, Select: "a=b"}, false},
		"a handler of events":    {Handler{Family: Events, Select: "a=b"}, false},
		"an index":               {Handler{Family: Indexing, Select: "a=b"}, true},
	} {
		if err := c.handler.CheckSelect(); (err == nil) != c.fits {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestHandlersOfOneResourceHaveOneSelection(t *testing.T) {
	for name, c := range map[string]struct {
		a, b Handler
		fits bool
	}{
		"the same":            {Handler{Family: Changes, Select: "a=b"}, Handler{Family: Changes, Select: "a=b"}, true},
		"different":           {Handler{Family: Changes, Select: "a=b"}, Handler{Family: Changes, Select: "a=c"}, false},
		"one without":         {Handler{Family: Changes, Select: "a=b"}, Handler{Family: Changes}, false},
		"a review":            {Handler{Family: Reviews}, Handler{Family: Changes, Select: "a=b"}, true},
		"a review, reversely": {Handler{Family: Changes, Select: "a=b"}, Handler{Family: Reviews}, true},
	} {
		if err := c.a.CheckSameSelect(&c.b); (err == nil) != c.fits {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
