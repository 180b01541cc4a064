package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// cut returns the items of arrays and the fields of objects on the first level.
func cut(source io.Reader, largest int) (values []string, err error) {
	s := NewStream(source, largest)
	take := func() error {
		v, err := s.Value()
		var long *TooLongError
		if errors.As(err, &long) {
			values = append(values, "too long: "+string(long.Head))
			return nil
		}
		if err == nil {
			values = append(values, string(v))
		}
		return err
	}
	for {
		c, err := s.Peek()
		switch {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return values, err
		case c == '{':
			err = s.Object(func(name []byte) error {
				values = append(values, string(name)+":")
				return take()
			})
		case c == '[':
			err = s.Array(take)
		default:
			err = take()
		}
		if err != nil {
			return values, err
		}
	}
}

func TestStreamSplitsTextsIntoValues(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)
	var numbers, large []string // larger than the first buffer, and than one that is kept
	for i := range 5_000 {
		numbers = append(numbers, strconv.Itoa(i))
	}
	for i := range 3 {
		large = append(large, `"`+strings.Repeat(strconv.Itoa(i), largeBuffer+1000*i)+`"`)
	}
	cases := map[string]struct {
		text string
		want []string
		err  string
	}{
		"nothing":              {text: " \n"},
		"an empty object":      {text: "{ }"},
		"an empty array":       {text: "[\n]"},
		"items":                {text: ` [ 1 , "a,]" , {"b":[2]} , [ ] , null, -1.5e3 ] `, want: []string{"1", `"a,]"`, `{"b":[2]}`, "[ ]", "null", "-1.5e3"}},
		"fields":               {text: `{"a":1,"b" : "\"}\\","c":{"d":"\\"}}`, want: []string{`"a":`, "1", `"b":`, `"\"}\\"`, `"c":`, `{"d":"\\"}`}},
		"texts in a row":       {text: `{"a":1}{"b":2}` + "\n3 true", want: []string{`"a":`, "1", `"b":`, "2", "3", "true"}},
		"any depth":            {text: "[" + deep + ",1]", want: []string{deep, "1"}},
		"invalid inside":       {text: `[{"a":nul,,},1]`, want: []string{`{"a":nul,,}`, "1"}},
		"no comma":             {text: `[1 2]`, want: []string{"1"}, err: `invalid JSON: unexpected '2'`},
		"a comma too many":     {text: `[1,]`, want: []string{"1"}, err: `invalid JSON: unexpected ']'`},
		"a comma first":        {text: `[,1]`, err: `invalid JSON: unexpected ','`},
		"a number as a name":   {text: `{1:2}`, err: `invalid JSON: unexpected '1'`},
		"no colon":             {text: `{"a" 1}`, err: `invalid JSON: unexpected '1'`},
		"the wrong bracket":    {text: `[1}`, want: []string{"1"}, err: `invalid JSON: unexpected '}'`},
		"the end in a string":  {text: `["a`, err: "unexpected EOF"},
		"the end after a name": {text: `{"a"`, err: "unexpected EOF"},
		"the end in an array":  {text: `[1,`, want: []string{"1"}, err: "unexpected EOF"},
		"the end in a number":  {text: `[1`, err: "unexpected EOF"},
		"the end in a name":    {text: `{"a`, err: "unexpected EOF"},
		"two commas":           {text: `{"a":1,,"b":2}`, want: []string{`"a":`, "1"}, err: `invalid JSON: unexpected ','`},
		"a name alone":         {text: `{"a","b":2}`, err: `invalid JSON: unexpected ','`},
		"a string too close":   {text: `[1"a"]`, want: []string{"1"}, err: `invalid JSON: unexpected '"'`},
		"an object too close":  {text: `[1{}]`, want: []string{"1"}, err: `invalid JSON: unexpected '{'`},
		"many items":           {text: "[" + strings.Join(numbers, ",") + "]", want: numbers},
		"large items":          {text: "[" + strings.Join(large, ",") + "]", want: large},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, source := range map[string]io.Reader{
				"at once":       strings.NewReader(c.text),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(c.text)),
				"with io.EOF":   iotest.DataErrReader(strings.NewReader(c.text)),
				"in halves":     iotest.HalfReader(strings.NewReader(c.text)),
				"long spaces":   io.MultiReader(strings.NewReader(strings.Repeat(" ", 100_000)), strings.NewReader(c.text)),
				"from a buffer": bytes.NewBufferString(c.text),
			} {
				got, err := cut(source, 1<<20)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: -want +got\n%s", way, diff)
				}
				if err == nil && c.err != "" || err != nil && err.Error() != c.err {
					t.Errorf("%s: got error %v, want %s", way, err, c.err)
				}
			}
		})
	}
}

func TestLongValuesAreSkipped(t *testing.T) {
	t.Parallel()
	long := `{"name":"a","text":"` + strings.Repeat("x", 1000) + `"}`
	for way, source := range map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
	} {
		got, err := cut(source(strings.NewReader("[1,"+long+",2]")), 100)
		if err != nil || len(got) != 3 || got[0] != "1" || got[2] != "2" || !strings.HasPrefix(got[1], `too long: {"name":"a","text":"x`) {
			t.Errorf("%s: %v, error %v", way, got, err)
		}
	}
}

func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	wide := func(values int) string { return "[" + strings.Repeat("0,", values-2) + "0]" }
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"ordinary":            {`{"a":[1,2,3]}`, ""},
		"bytes":               {`"` + strings.Repeat("x", MaxStored) + `"`, "it has more than 2097152 bytes"},
		"a long text":         {`"` + strings.Repeat("x", MaxStored-2) + `"`, ""},
		"deepest":             {nested(MaxDepth), ""},
		"too deep":            {nested(MaxDepth + 1), "it has more than 1000 levels"},
		"many objects":        {"[" + strings.Repeat("{},", 5000) + "{}]", ""},
		"widest":              {wide(MaxValues), ""},
		"too wide":            {wide(MaxValues + 1), "it has more than 262144 values"},
		"most objects":        {"[" + strings.Repeat("{},", MaxValues/5-1) + "{}]", ""},
		"too many objects":    {"[" + strings.Repeat("{},", MaxValues/5) + "{}]", "it has more than 262144 values"},
		"brackets in strings": {`["` + strings.Repeat(`[{\"`, 100_000) + `\\","` + strings.Repeat(",", 500_000) + `"]`, ""},
		"invalid":             {`["` + strings.Repeat("[", 10_000), ""},
	} {
		text := ""
		if err := Check([]byte(c.text), MaxStored); err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
		var v any
		if err := json.Unmarshal([]byte(c.text), &v); err != nil && name != "invalid" {
			t.Errorf("%s: the text of the test is not valid JSON: %v", name, err)
		}
	}
}
