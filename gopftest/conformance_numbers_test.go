package gopftest

import (
	"context"
	"io"
	"regexp"
	"testing"
)

// numbering checks how the API server stores numbers in custom resources. It keeps
// integers that fit into 64 bits. It converts all other numbers to float64: long
// integers lose digits, and fractions are cut after 17 digits. The exact text matters,
// so nothing is decoded here.
func numbering() []behaviour {
	const numbers = `"small":1,"negative":-7,"whole":1.0,"exponent":1e3,"half":0.5,"tiny":1e-7,"precise":0.1234567890123456789,` +
		`"above53":9007199254740993,"nanos":1763217600123456789,"maximum":9223372036854775807,"minimum":-9223372036854775808,` +
		`"beyond":9223372036854775808,"unsigned":18446744073709551615,"below":-9223372036854775809,` +
		`"round":100000000000000000000,"limit":1000000000000000000000,"long":123456789012345678901234567890,"largest":1e308`
	return []behaviour{
		{"numbers are kept as 64-bit integers or floats", func(t *testing.T, s *script) {
			s.spell("POST", widgets, widget("a", "", `"spec":{`+numbers+`}`))
			s.spell("GET", widgets+"/a", "")
		}},
		{"numbers stay when something else is patched", func(t *testing.T, s *script) {
			s.send("POST", widgets, widget("a", "", `"spec":{`+numbers+`}`))
			s.spell("PATCH", widgets+"/a", `{"spec":{"more":9007199254740995}}`)
			s.spell("PATCH", widgets+"/a", `[{"op":"add","path":"/spec/most","value":18446744073709551615},{"op":"test","path":"/spec/above53","value":9007199254740993}]`)
			s.spell("PATCH", widgets+"/a/status", `{"status":{"nanos":1763217600123456789,"unsigned":18446744073709551615}}`)
			s.spell("GET", widgets+"/a", "")
		}},
		{"numbers beyond floats are refused", func(t *testing.T, s *script) {
			s.note(s.send("POST", widgets, widget("a", "", `"spec":{"n":1e999}`)).code)
		}},
		{"numbers of built-in kinds are of their types", func(t *testing.T, s *script) {
			s.note(s.send("POST", "/api/v1/namespaces/{ns}/configmaps", `{"metadata":{"name":"a"},"data":{"n":1}}`).code)
		}},
	}
}

// spell makes a request, and records spec and status exactly as they are spelled in the
// response.
func (s *script) spell(method, path, body string) {
	s.t.Helper()
	resp, err := s.open(context.Background(), method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.note(method, path)
	s.note("  ->", resp.StatusCode, spelled.FindAllString(string(raw), -1))
}

var spelled = regexp.MustCompile(`"(spec|status)":\{[^{}]*\}`)
