package object

import (
	"slices"
	"testing"
)

func TestFieldsOfMetadataAreFoundHoweverTheirNamesAreWritten(t *testing.T) {
	for name, test := range map[string]struct {
		metadata    string
		annotations int
		finalizers  []string
	}{
		"neither":              {`{"name":"x","labels":{"a":"b"}}`, 0, nil},
		"both":                 {`{"name":"x","annotations":{"a":"b"},"finalizers":["f"]}`, 1, []string{"f"}},
		"escaped names":        {`{"name":"x","\u0061nnotations":{"a":"b"},"finaliz\u0065rs":["f"]}`, 1, []string{"f"}},
		"labels of that name":  {`{"name":"x","labels":{"annotations":"x","finalizers":"y"}}`, 0, nil},
		"names inside of text": {`{"name":"x","labels":{"a":"\"annotations\":{}"}}`, 0, nil},
		"null":                 {`{"name":"x","annotations":null,"finalizers":null}`, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := mustParse(t, []byte(`{"kind":"X","metadata":`+test.metadata+`,"spec":{"annotations":{"c":"d"},"finalizers":["g"]}}`))
			if got := b.Annotations(); len(got) != test.annotations {
				t.Errorf("annotations: got %v, want %d", got, test.annotations)
			}
			if got := b.Finalizers(); !slices.Equal(got, test.finalizers) {
				t.Errorf("finalizers: got %q, want %q", got, test.finalizers)
			}
		})
	}
}

func TestMetadataWithoutAnnotationsAndFinalizersIsNotDecoded(t *testing.T) {
	b := mustParse(t, []byte(`{"kind":"X","metadata":{"name":"x","labels":{"a":"b"}},"spec":{}}`))
	if allocated := testing.AllocsPerRun(10, func() { b.Annotations(); b.Finalizers() }); allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestForgottenValuesAreDecodedAgain(t *testing.T) {
	b := mustParse(t, []byte(`{"kind":"X","metadata":{"name":"x","annotations":{"a":"b"}},"spec":{"n":1}}`))
	whole, spec := b.Map(), b.Annotations()
	b.Forget()
	if b.Annotations()["a"] != "b" || b.Map()["spec"].(map[string]any)["n"] != int64(1) {
		t.Error("a value is lost")
	}
	if spec["a"] != "b" || whole["kind"] != "X" {
		t.Error("a returned value has changed")
	}
}
