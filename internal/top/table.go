package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// maxHandlers limits the printed handlers. The slowest ones come first.
const maxHandlers = 20

// Write prints the activity of an operator as tables. before is an earlier sample, for
// rates; nil means that only totals are known. elapsed is the time between the samples.
func Write(to io.Writer, now, before *Sample, elapsed time.Duration) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	all := map[string]string{}
	fmt.Fprintf(w, "operator %s; %.0f calls are running; requests: %.0f in flight, %.0f waiting, limit %.0f\n\n",
		now.state(), now.sum("gopf_handlers_running", all), now.sum("gopf_api_requests_in_flight", all),
		now.sum("gopf_api_requests_waiting", all), now.sum("gopf_api_requests_limit", all))
	r := rates{now, before, elapsed}
	r.resources(w)
	r.handlers(w)
	r.requests(w)
	return w.Flush()
}

// rates compares two samples.
type rates struct {
	now, before *Sample
	elapsed     time.Duration
}

// rate returns the increase of a counter per second, as text. A counter that has decreased
// belongs to another process.
func (r rates) rate(metric string, labels map[string]string) string {
	if rate := r.perSecond(metric, labels); rate != nil {
		return fmt.Sprintf("%.1f", *rate)
	}
	return "-"
}

// perSecond returns the increase of a counter per second. nil means that it is not known.
func (r rates) perSecond(metric string, labels map[string]string) *float64 {
	if r.before == nil || r.elapsed <= 0 {
		return nil
	}
	increase := r.now.sum(metric, labels) - r.before.sum(metric, labels)
	if increase < 0 {
		return nil
	}
	rate := increase / r.elapsed.Seconds()
	return &rate
}

func (r rates) resources(w io.Writer) {
	fmt.Fprintln(w, "RESOURCE\tWATCHES\tFAILING\tEVENTS/S\tQUEUED\tOLDEST\tRETRIES\tPAUSED\tDAEMONS\tTIMERS")
	for _, name := range r.now.values("gopf_queue_depth", "resource") {
		of := map[string]string{"resource": name}
		in := func(state string) float64 {
			return r.now.sum("gopf_streams", map[string]string{"resource": name, "state": state})
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%s\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\n", name,
			in("watching")+in("listing"), in("failing"), r.rate("gopf_stream_events_total", of),
			r.now.sum("gopf_queue_depth", of), seconds(r.now.sum("gopf_queue_oldest_age_seconds", of)),
			r.now.sum("gopf_retries_waiting", of), r.now.sum("gopf_paused_objects", of),
			r.now.sum("gopf_daemons_running", of), r.now.sum("gopf_timers_waiting", of))
	}
	fmt.Fprintln(w)
}

// called is a handler with its calls.
type called struct {
	handler, resource    string
	calls, failed, spent float64
}

// mean returns the average duration of a call, in seconds.
func (c called) mean() float64 {
	if c.calls == 0 {
		return 0
	}
	return c.spent / c.calls
}

// calledHandlers returns the handlers that were called, the slowest first.
func (r rates) calledHandlers() (list []called) {
	for _, one := range r.now.series {
		if one.name != "gopf_handler_duration_seconds_count" || one.value == 0 {
			continue
		}
		of := map[string]string{"handler": one.labels["handler"], "resource": one.labels["resource"]}
		list = append(list, called{of["handler"], of["resource"], one.value, r.failed(r.now, of), r.now.sum("gopf_handler_duration_seconds_sum", of)})
	}
	slices.SortStableFunc(list, func(a, b called) int {
		return cmp.Or(-cmp.Compare(a.mean(), b.mean()), strings.Compare(a.handler, b.handler), strings.Compare(a.resource, b.resource))
	})
	return list
}

func (r rates) handlers(w io.Writer) {
	list := r.calledHandlers()
	fmt.Fprintln(w, "HANDLER\tRESOURCE\tMEAN\tCALLS/S\tCALLS\tRETRIED OR FAILED")
	for _, c := range list[:min(len(list), maxHandlers)] {
		of := map[string]string{"handler": c.handler, "resource": c.resource}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%.0f\n", c.handler, c.resource, seconds(c.mean()), r.rate("gopf_handler_duration_seconds_count", of), c.calls, c.failed)
	}
	if len(list) > maxHandlers {
		fmt.Fprintf(w, "and %d faster ones\n", len(list)-maxHandlers)
	}
	fmt.Fprintln(w)
}

// failed returns the number of calls that ended with an error.
func (r rates) failed(s *Sample, of map[string]string) (n float64) {
	for _, outcome := range []string{"failed", "retried", "ignored"} {
		n += s.sum("gopf_handler_runs_total", map[string]string{"handler": of["handler"], "resource": of["resource"], "outcome": outcome})
	}
	return n
}

func (r rates) requests(w io.Writer) {
	fmt.Fprintln(w, "REQUESTS\tPER SECOND\tTOTAL\tCONFLICTS\tTHROTTLED\tNO RESPONSE")
	for _, verb := range r.now.values("gopf_api_requests_total", "verb") {
		code := func(code string) float64 {
			return r.now.sum("gopf_api_requests_total", map[string]string{"verb": verb, "code": code})
		}
		of := map[string]string{"verb": verb}
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.0f\t%.0f\n", verb, r.rate("gopf_api_requests_total", of), r.now.sum("gopf_api_requests_total", of),
			code("409"), code("429"), code("0"))
	}
}

// seconds returns a duration as text.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d == 0:
		return "0"
	case d < time.Second:
		return d.Round(time.Microsecond * 100).String()
	}
	return d.Round(time.Second / 10).String()
}
