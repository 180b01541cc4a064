package jsonvalue_test

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	kjson "sigs.k8s.io/json"

	"gopf.dev/gopf/internal/jsonvalue"
)

func TestIntegersKeepAllDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		"0":                              int64(0),
		"-0":                             int64(0),
		"9007199254740993":               int64(1<<53 + 1),
		"9223372036854775807":            int64(math.MaxInt64),
		"-9223372036854775808":           int64(math.MinInt64),
		"9223372036854775808":            json.Number("9223372036854775808"),
		"9223372036854776000":            9223372036854776000.0,
		"18446744073709551615":           json.Number("18446744073709551615"),
		"18446744073709552000":           18446744073709552000.0,
		"100000000000000000000":          1e20,
		"1000000000000000000000":         json.Number("1000000000000000000000"), // Go formats it as 1e+21
		"123456789012345678901234567890": json.Number("123456789012345678901234567890"),
		"1.0":                            1.0,
		"1e3":                            1e3,
		"1e+21":                          1e21,
		"5e-324":                         5e-324,
	} {
		if got, err := jsonvalue.Number(text); err != nil || got != want {
			t.Errorf("%s: %T %v, error %v", text, got, got, err)
		}
	}
	if got, err := jsonvalue.Number("1e999"); err == nil {
		t.Errorf("1e999: %v", got)
	}
}

// Integers of any length, and all numbers that an API server sends, must encode to the
// same text.
func TestNumbersEncodeToTheSameText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	roundTrip := func(text string) {
		t.Helper()
		v, err := jsonvalue.Number(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(v); err != nil || string(again) != text {
			t.Fatalf("%s became %T and then %s, error %v", text, v, again, err)
		}
	}
	for range 20_000 {
		integer := new(big.Int).Lsh(big.NewInt(random.Int64()), uint(random.IntN(80)))
		integer.Add(integer, big.NewInt(random.Int64N(1<<62)-1<<61)).Rsh(integer, uint(random.IntN(100)))
		roundTrip(integer.String())

		f := math.Float64frombits(random.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		if random.IntN(2) == 0 {
			f = math.Trunc(math.Ldexp(random.Float64(), random.IntN(90)))
		}
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var stored any // API servers store it like this
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &stored); err != nil {
			t.Fatal(err)
		}
		sent, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		if string(sent) == "-0" {
			continue
		}
		roundTrip(string(sent))
		if got, _ := strconv.ParseFloat(string(sent), 64); got != f {
			t.Fatalf("the server changed %v to %s", f, sent)
		}
	}
}
