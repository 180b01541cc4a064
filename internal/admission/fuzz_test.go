package admission

import "testing"

// A review is refused, or complete enough to be handled.
func FuzzReview(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"request":{"uid":"u","operation":"CREATE","userInfo":{},"object":{"metadata":{"name":"a"}}}}`, `{"kind":"X"}`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"operation":"DELETE","userInfo":{"groups":["g"],"extra":{"a":["b"]}},"object":null,"oldObject":{"spec":[[[]]]}}}`,
		`{"request":{"operation":"UPDATE","userInfo":{},"object":[],"oldObject":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := decode(text)
		if err != nil {
			return
		}
		rv, err := in.Request.review()
		if err != nil {
			return
		}
		if rv.New == nil && rv.Old == nil {
			t.Fatal("a review of nothing")
		}
		rv.Diff()
		in.answer(verdict{})
	})
}
