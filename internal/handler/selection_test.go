package handler

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCheckSameSelectRejectsDifferentSelectorsOfOneWatch(t *testing.T) {
	cases := map[string]struct {
		a, b Handler
		ok   bool
	}{
		"no selectors":          {Handler{}, Handler{Family: Events}, true},
		"the same selector":     {Handler{Select: "x"}, Handler{Select: "x", Family: Indexing}, true},
		"different selectors":   {Handler{Select: "x"}, Handler{Select: "y"}, false},
		"both hand over":        {Handler{Select: "x", HandOver: true}, Handler{Select: "x", HandOver: true}, true},
		"one hands over":        {Handler{Select: "x", HandOver: true}, Handler{Select: "x"}, false},
		"one has no selector":   {Handler{Select: "x"}, Handler{}, false},
		"the first is a review": {Handler{Select: "x", Family: Reviews}, Handler{}, true},
		"the other is a review": {Handler{Select: "x"}, Handler{Family: Reviews}, true},
	}
	for name, c := range cases {
		err := c.a.CheckSameSelect(&c.b)
		if (err == nil) != c.ok || err != nil && strings.Contains(err.Error(), "HandOver") != (name == "one hands over") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestUpdatesReportsTheUpdateOperation(t *testing.T) {
	for operations, want := range map[string]bool{"": true, "UPDATE": true, "CREATE,UPDATE": true, "CREATE": false, "DELETE,CONNECT": false} {
		a := Admission{}
		if operations != "" {
			a.Operations = strings.Split(operations, ",")
		}
		if got := a.Updates(); got != want {
			t.Errorf("%q: got %v, want %v", operations, got, want)
		}
	}
}

func TestAnIndexSelectsWhatTheAPICanExpress(t *testing.T) {
	exists := metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpExists}
	absent := metav1.LabelSelectorRequirement{Key: "b", Operator: metav1.LabelSelectorOpDoesNotExist}
	is := metav1.LabelSelectorRequirement{Key: "c", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}
	for name, c := range map[string]struct {
		handlers Set
		want     string
	}{
		"all operators":         {Set{{Family: Indexing, Labels: Requirements{exists, absent, is}}}, "a,!b,c=1"},
		"another operator":      {Set{{Family: Indexing, Labels: Requirements{exists, {Key: "d", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}}}}}, "a"},
		"an impossible value":   {Set{{Family: Indexing, Labels: Requirements{exists, {Key: "d", Operator: metav1.LabelSelectorOpIn, Values: []string{"no label"}}}}}, "a"},
		"what two have both":    {Set{{Family: Indexing, Labels: Requirements{exists, is}}, {Family: Indexing, Labels: Requirements{absent, is}}}, "c=1"},
		"nothing in common":     {Set{{Family: Indexing, Labels: Requirements{exists}}, {Family: Indexing}}, ""},
		"with another handler":  {Set{{Family: Indexing, Labels: Requirements{exists}}, {Family: Events, Labels: Requirements{exists}}}, ""},
		"no handlers":           {nil, ""},
		"three with one shared": {Set{{Family: Indexing, Labels: Requirements{exists, is}}, {Family: Indexing, Labels: Requirements{exists}}, {Family: Indexing, Labels: Requirements{exists, is}}}, "a"},
	} {
		if got := c.handlers.Indexed(); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
