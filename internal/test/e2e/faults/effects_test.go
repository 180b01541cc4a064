package faults_test

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The effects on requests.

// answers gives an error for an answer; the header has names and values in turn.
// The server gets to know nothing.
func answers(code int, header ...string) effect {
	return func(x *exchange) {
		for i := 0; i+1 < len(header); i += 2 {
			x.w.Header().Set(header[i], header[i+1])
		}
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(code)
		_, _ = x.w.Write(statusOf(code))
	}
}

var reasons = map[int]metav1.StatusReason{
	400: metav1.StatusReasonBadRequest, 401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden,
	404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 410: metav1.StatusReasonExpired,
	429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
}

func statusOf(code int) []byte {
	raw, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reasons[code], Message: "a fault: " + http.StatusText(code),
	})
	if err != nil {
		panic(err)
	}
	return raw
}

// drops breaks the connection before the server has got the request.
func drops(x *exchange) { x.abort() }

// loses breaks the connection when the server has answered.
func loses(x *exchange) {
	if resp, err := x.forward(); err == nil {
		resp.Body.Close()
	}
	x.abort()
}

// garbles replaces the body of the answer.
func garbles(x *exchange) {
	resp, err := x.forward()
	if err != nil {
		x.abort()
	}
	resp.Body.Close()
	x.w.Header().Set("Content-Type", "application/json")
	x.w.WriteHeader(resp.StatusCode)
	_, _ = x.w.Write([]byte(`{"kind":"Patient",]`))
}

// cutsAfter breaks the connection within the body of the answer.
func cutsAfter(n int) effect {
	return func(x *exchange) {
		resp, err := x.forward()
		if err != nil {
			x.abort()
		}
		defer resp.Body.Close()
		resp.Header.Del("Content-Length")
		x.head(resp)
		_, _ = io.CopyN(x.w, resp.Body, int64(n))
		x.flush()
		x.abort()
	}
}

// neverSends keeps the request to itself and never answers.
func neverSends(x *exchange) { x.hang() }

// neverAnswers has the server do what is asked for and keeps the answer.
func neverAnswers(x *exchange) {
	if resp, err := x.forward(); err == nil {
		resp.Body.Close()
	}
	x.hang()
}

// neverEnds hands on the head of the answer and keeps the body.
func neverEnds(x *exchange) {
	resp, err := x.forward()
	if err != nil {
		x.abort()
	}
	defer resp.Body.Close()
	x.head(resp)
	x.hang()
}

// delays makes the answer late.
func delays(d time.Duration) effect {
	return func(x *exchange) {
		if x.kind == "watch" {
			x.wait(d)
			x.pass()
			return
		}
		resp, err := x.forward()
		if err != nil {
			x.abort()
		}
		defer resp.Body.Close()
		x.wait(d)
		x.head(resp)
		_, _ = io.Copy(x.w, resp.Body)
	}
}
