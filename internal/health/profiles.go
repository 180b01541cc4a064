package health

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"strings"
	"time"
)

const profilesPath = "/debug/pprof/"

// longestProfile limits the duration of a profile.
const longestProfile = 10 * time.Minute

// serveProfiles serves profiles at the paths that "go tool pprof" uses.
//
// It does not use net/http/pprof, which registers its handlers in the default mux of
// every program that imports it: an operator whose own server uses that mux would
// expose its internals.
func serveProfiles(w http.ResponseWriter, req *http.Request) {
	switch name := strings.TrimPrefix(req.URL.Path, profilesPath); name {
	case "":
		writeText(w, http.StatusOK, profileIndex())
	case "profile":
		record(w, req, 30*time.Second, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		record(w, req, time.Second, trace.Start, trace.Stop)
	default:
		namedProfile(w, req, name)
	}
}

func profileIndex() string {
	var text strings.Builder
	fmt.Fprintln(&text, "go tool pprof http://…"+profilesPath+"NAME, where NAME is one of:")
	fmt.Fprintln(&text, "profile (of the CPU; ?seconds=30)")
	fmt.Fprintln(&text, "trace (for go tool trace; ?seconds=1)")
	for _, p := range pprof.Profiles() {
		fmt.Fprintf(&text, "%s (%d; ?debug=1 as text)\n", p.Name(), p.Count())
	}
	return text.String()
}

// record serves a profile that is recorded for some time.
func record(w http.ResponseWriter, req *http.Request, usual time.Duration, start func(io.Writer) error, stop func()) {
	d := usual
	if text := req.URL.Query().Get("seconds"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if d = time.Duration(seconds * float64(time.Second)); err != nil || d <= 0 || d > longestProfile {
			writeText(w, http.StatusBadRequest, fmt.Sprintf("seconds must be a number between 0 and %.0f\n", longestProfile.Seconds()))
			return
		}
	}
	// The usual deadline for responses is shorter. If it cannot be extended, the
	// response is truncated, which the client will notice.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d + requestTime))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := start(w); err != nil {
		writeText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	defer stop()
	enough := time.NewTimer(d)
	defer enough.Stop()
	select {
	case <-enough.C:
	case <-req.Context().Done():
	}
}

// namedProfile serves a profile of the current state.
func namedProfile(w http.ResponseWriter, req *http.Request, name string) {
	p := pprof.Lookup(name)
	query := req.URL.Query()
	switch {
	case p == nil:
		writeText(w, http.StatusNotFound, fmt.Sprintf("there is no profile %q; %s lists them\n", name, profilesPath))
		return
	case query.Has("seconds"):
		writeText(w, http.StatusBadRequest, "only profile and trace support seconds: fetch two and compare them with -diff_base\n")
		return
	}
	if name == "heap" && query.Get("gc") == "1" {
		runtime.GC()
	}
	level, _ := strconv.Atoi(query.Get("debug"))
	w.Header().Set("Content-Type", "application/octet-stream")
	if level > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = p.WriteTo(w, level) // the client may be gone
}
