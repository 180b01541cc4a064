package object

import "testing"

func TestScanningOddObjects(t *testing.T) {
	cases := map[string]struct{ in, name string }{
		"escaped names":        {`{"meta\u0064ata":{"n\u0061me":"a"}}`, "a"},
		"duplicate names":      {`{"metadata":{"name":"a","name":"b"},"spec":{"x":1,"x":2}}`, "b"},
		"metadata of no use":   {`{"metadata":1}`, ""},
		"a name of no use":     {`{"metadata":{"name":1}}`, ""},
		"an escaped last name": {`{"metadata":{"name":"\u00e4","\"":1}}`, "ä"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Parse([]byte(c.in))
			if err != nil || b.Name != c.name {
				t.Errorf("got %+v, %v", b, err)
			}
		})
	}
}
