package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// page serves one of the two verdicts.
type page struct {
	snapshot func() Snapshot
	name     string // adjective if the verdict is OK
	answer   func(Report) (own Verdict, otherName string, other Verdict)
}

func livePage(snapshot func() Snapshot) http.Handler {
	return page{snapshot, "alive", func(r Report) (Verdict, string, Verdict) { return r.Live, "ready", r.Ready }}
}

func readyPage(snapshot func() Snapshot) http.Handler {
	return page{snapshot, "ready", func(r Report) (Verdict, string, Verdict) { return r.Ready, "alive", r.Live }}
}

func (p page) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r := Judge(time.Now(), p.snapshot())
	own, otherName, other := p.answer(r)
	code := http.StatusOK
	if !own.OK {
		code = http.StatusServiceUnavailable
	}
	query := req.URL.Query()
	if !query.Has("verbose") {
		r.Findings = nil
	}
	if query.Get("format") == "json" || strings.Contains(req.Header.Get("Accept"), "application/json") {
		body, err := json.Marshal(struct {
			OK bool `json:"ok"`
			Report
		}{own.OK, r})
		if err != nil {
			writeText(w, http.StatusInternalServerError, err.Error())
			return
		}
		writeJSON(w, code, body)
		return
	}
	var text strings.Builder
	fmt.Fprintln(&text, verdict(own, p.name))
	for _, reason := range own.Reasons {
		fmt.Fprintln(&text, reason)
	}
	for _, reason := range other.Reasons {
		fmt.Fprintf(&text, "not %s: %s\n", otherName, reason)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(&text, "warning:", warning)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(&text, "note:", note)
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(&text, "\nAll checks:")
		for _, f := range r.Findings {
			fmt.Fprintf(&text, "[%s] %s: %s\n", f.Level, f.About, f.Text)
		}
	}
	writeText(w, code, text.String())
}

func verdict(v Verdict, name string) string {
	if v.OK {
		return name
	}
	return "not " + name
}

// probePage serves the results of the probes. Kopf uses this endpoint for liveness, so
// it also fails if the operator is not live.
func probePage(snapshot func() Snapshot, c *collector) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := Judge(time.Now(), snapshot())
		switch {
		case !r.Started: // the probes may depend on the startup handlers
			writeText(w, http.StatusServiceUnavailable, "not started\n"+strings.Join(r.Ready.Reasons, "\n")+"\n")
			return
		case !r.Live.OK:
			writeText(w, http.StatusServiceUnavailable, "not alive\n"+strings.Join(r.Live.Reasons, "\n")+"\n")
			return
		}
		body, err := c.get(req.Context())
		if err != nil {
			writeText(w, http.StatusInternalServerError, fmt.Sprintf("A probe failed: %v\n", err))
			return
		}
		writeJSON(w, http.StatusOK, body)
	})
}

func writeText(w http.ResponseWriter, code int, text string) {
	write(w, code, "text/plain; charset=utf-8", []byte(text))
}

func writeJSON(w http.ResponseWriter, code int, body []byte) {
	write(w, code, "application/json; charset=utf-8", body)
}

func write(w http.ResponseWriter, code int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client may be gone
}
