package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// claims are the texts with numbers that pages must have, made of the code's own
// values.
func claims(t *testing.T) map[string][]string {
	t.Helper()
	c := constants{importer.ForCompiler(token.NewFileSet(), "source", nil)}
	s := gopf.DefaultSettings()
	review, probes := admission.DefaultReviewerOptions(), health.DefaultConfig()
	watch := stream.DefaultConfig(kind.Info{}, "")
	// Quantities as pages write them.
	sec := func(d time.Duration) string { return fmt.Sprint(d.Seconds()) }
	of := func(pkg, name string) string { return sec(time.Duration(c.value(t, pkg, name))) }
	mib := func(n int64) string { return fmt.Sprint(n >> 20) }
	kib := func(n int64) string { return fmt.Sprint(n >> 10) }
	count := func(n int64) string {
		text := fmt.Sprint(n)
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
		return text
	}
	size := fmt.Sprintf("more than %s values or %s MiB", count(jsonvalue.MaxValues), mib(jsonvalue.MaxObject))
	exit := sec(s.Queueing.ExitTimeout)
	ultimate := sec(s.Process.UltimateExitingTimeout)
	backoff := sec(s.Execution.DefaultBackoff)
	polling := sec(s.Background.CancellationPolling)
	text := count(c.value(t, "internal/execute", "longest"))
	slow := kib(c.value(t, "internal/admission", "slowRate"))
	stalled := of("internal/health", "stalledReview")
	line := kib(c.value(t, "logs", "longestText"))
	costly := mib(c.value(t, "internal/process", "costlyMemory"))
	return map[string][]string{
		"docs/admission.md": {
			fmt.Sprintf("(`Overlap`, %d minutes)", time.Duration(c.value(t, "webhook", "defaultOverlap"))/time.Minute),
			fmt.Sprintf("| %s MiB | 413 |", mib(review.MaxBody)),
			fmt.Sprintf("| time for its arrival | %s s | 408 |", sec(review.ReadTimeout)),
			fmt.Sprintf("| all reviews that arrive, wait or are handled | %s MiB |", mib(review.Bytes)),
			fmt.Sprintf("at less than %s KiB/s, are dropped", slow),
			fmt.Sprintf("| handled at the same time | %d, and about %s MiB when decoded |", review.InFlight, mib(review.Memory)),
			fmt.Sprintf("| time for all of it | %s s, or what the API server allows |", sec(review.Timeout)),
			fmt.Sprintf("a handler takes more than %s s |", sec(review.Timeout)),
			fmt.Sprintf("reviews wait for %s seconds.", stalled),
		},
		"docs/architecture.md": {
			fmt.Sprintf("Probes a silent watch after %s s, replaces it after %s s.", sec(watch.ProbeAfter), sec(watch.InactivityTimeout)),
			fmt.Sprintf("At most %s MiB wait for each resource", mib(c.value(t, ".", "backlog"))),
		},
		"docs/arguments.md": {fmt.Sprintf("`Settings.Queueing.ExitTimeout` (%s s)", exit)},
		"docs/cli.md":       {fmt.Sprintf("`Settings.Process.UltimateExitingTimeout`, %s seconds", ultimate), fmt.Sprintf("Texts are cut at %s KiB;", line)},
		"docs/daemons.md":   {fmt.Sprintf("`Settings.Background.CancellationPolling`, %s s", polling)},
		"docs/differences.md": {
			fmt.Sprintf("cut to %s characters |", text),
			fmt.Sprintf("nested more than %s levels, or have %s", count(jsonvalue.MaxDepth), size),
			fmt.Sprintf("after 50 to %d ms;", time.Duration(c.value(t, "internal/apply", "ConflictDelay")).Milliseconds()),
			fmt.Sprintf("| %s seconds, less than what Kubernetes gives a pod", ultimate),
			fmt.Sprintf("with growing pauses of %s s at most", of("internal/stream", "maxOverloadPause")),
			fmt.Sprintf("%s s at most once the API answers again", of("internal/process", "maxOutageDelay")),
			fmt.Sprintf("| probed after %s s,", sec(watch.ProbeAfter)),
			fmt.Sprintf("| %s s (`Settings.Networking.RequestTimeout`) |", sec(s.Networking.RequestTimeout)),
			fmt.Sprintf("is cancelled after %s s, and told as 500", sec(probes.ProbeLimit)),
			fmt.Sprintf("cut at %s KiB |", line),
		},
		"docs/errors.md":    {fmt.Sprintf("`Settings.Execution.DefaultBackoff`, %s s", backoff)},
		"docs/events.md":    {fmt.Sprintf("Messages are cut to %d characters", c.value(t, "internal/posting", "longest"))},
		"docs/from-kopf.md": {fmt.Sprintf("Requests have %s s, not 300 s;", sec(s.Networking.RequestTimeout))},
		"docs/health.md": {
			fmt.Sprintf("inactivity timeout, %s seconds by default", sec(watch.InactivityTimeout)),
			fmt.Sprintf("after %s seconds the probes are cancelled", sec(probes.ProbeLimit)),
			fmt.Sprintf("wait for capacity for %s seconds or more", stalled),
		},
		"docs/metrics.md": {fmt.Sprintf("From %s seconds on, `/readyz` is red.", stalled)},
		"docs/peering.md": {
			fmt.Sprintf("after its lifetime, %s s | after %s s;", sec(s.Peering.Lifetime), sec(s.Election.Duration)),
			fmt.Sprintf("| `Peering.Lifetime` | %s s |", sec(s.Peering.Lifetime)),
			fmt.Sprintf("| `Election.Duration` | %s s |", sec(s.Election.Duration)),
			fmt.Sprintf("| `Election.RenewDeadline` | %s s |", sec(s.Election.RenewDeadline)),
			fmt.Sprintf("| `Election.RetryPeriod` | %s s |", sec(s.Election.RetryPeriod)),
		},
		"docs/startup.md": {
			fmt.Sprintf("`Settings.Queueing.ExitTimeout` (%s s)", exit),
			fmt.Sprintf("`Settings.Process.UltimateExitingTimeout` (%s seconds)", ultimate),
		},
		"docs/timers.md": {fmt.Sprintf("`Settings.Queueing.ExitTimeout` (%s s)", exit)},
		"docs/troubleshooting.md": {
			fmt.Sprintf("annotations have room for %s KiB.", kib(storage.AnnotationsLimit)),
			fmt.Sprintf("nested more than %s levels deep, or has %s", count(jsonvalue.MaxDepth), size),
			fmt.Sprintf("took more than %s s without its handlers, or more than %s MiB by an estimate", of("internal/process", "costlyTime"), costly),
			fmt.Sprintf("The pause after errors is %s s by default", backoff),
		},
		"SECURITY.md": {
			fmt.Sprintf("at most %s MiB unpacked, %s levels and %s\n  values", mib(jsonvalue.MaxStored), count(jsonvalue.MaxDepth), count(jsonvalue.MaxValues)),
			fmt.Sprintf("levels and values, and by %s MiB.", mib(jsonvalue.MaxObject)),
			fmt.Sprintf("More than %s s in the framework's own code, or more than %s MiB of decoded values", of("internal/process", "costlyTime"), costly),
		},
	}
}

// elsewhere are the texts whose numbers are not of this code: they are Kubernetes',
// Kopf's or a user's, or another test checks them.
var elsewhere = map[string][]string{
	"docs/admission.md":   {"`terminationGracePeriodSeconds` of 30 s", "stores up to 1.5 MiB"},
	"docs/differences.md": {"awaited for 5 seconds", "| 10 minutes |", "up to 21 s for a request, 610 s for an object", "replaced after 70 s", "retried for 54 s", "may take 300 s"},
	"docs/guarantees.md":  {"within 5 s, and these lists replace"}, // TestARestoreFromABackupIsNoticedWithinSeconds
	"docs/trust.md":       {"of 16 bytes or more"},                 // TestSecretKeysNeedAsManyBytesAsThePageSays
}

var quantity = regexp.MustCompile(`\b[0-9][0-9,.]*\s(s|ms|seconds?|minutes?|hours?|[KMG]iB(/s)?|bytes|characters|levels|values)\b`)

// TestNumbersInThePagesAreThoseOfTheCode also finds numbers that no claim is about. The
// table of settings has a test of its own.
func TestNumbersInThePagesAreThoseOfTheCode(t *testing.T) {
	wanted := claims(t)
	read := map[string]string{}
	for _, p := range pages(t) {
		if strings.HasPrefix(p.path, "docs/") {
			read[p.path] = p.prose
		}
	}
	raw, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	read["SECURITY.md"] = string(raw)
	for path, prose := range read {
		covered := make([]bool, len(prose))
		for _, text := range append(wanted[path], elsewhere[path]...) {
			if !strings.Contains(prose, text) {
				t.Errorf("%s does not say %q", path, text)
			}
			for rest, at := prose, 0; ; {
				n := strings.Index(rest, text)
				if n < 0 {
					break
				}
				for j := range text {
					covered[at+n+j] = true
				}
				rest, at = rest[n+len(text):], at+n+len(text)
			}
		}
		for _, m := range quantity.FindAllStringIndex(prose, -1) {
			line := 1 + strings.Count(prose[:m[0]], "\n")
			settings := path == "docs/configuration.md" && strings.HasPrefix(lineAt(prose, m[0]), "| `")
			if !covered[m[0]] && !settings {
				t.Errorf("%s:%d: no claim is about %q", path, line, prose[m[0]:m[1]])
			}
		}
	}
	for path := range wanted {
		if read[path] == "" {
			t.Errorf("there is no page %s", path)
		}
	}
}

func lineAt(text string, at int) string {
	from := strings.LastIndex(text[:at], "\n") + 1
	line, _, _ := strings.Cut(text[from:], "\n")
	return line
}

// constants evaluates constants of packages, also those that are not exported.
type constants struct{ standard types.Importer }

// Import finds packages of the standard library. Constants need no others.
func (c constants) Import(path string) (*types.Package, error) {
	if strings.Contains(path, ".") {
		return nil, fmt.Errorf("%s is not needed", path)
	}
	return c.standard.Import(path)
}

func (c constants) value(t *testing.T, folder, name string) int64 {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if file.Decls = constantsOf(file, name); len(file.Decls) == 0 {
			continue
		}
		config := types.Config{Importer: c, Error: func(error) {}} // of imports that are not used any more
		pkg, _ := config.Check(folder, set, []*ast.File{file}, nil)
		if found, ok := pkg.Scope().Lookup(name).(*types.Const); ok {
			if n, exact := constant.Int64Val(constant.ToInt(found.Val())); exact {
				return n
			}
		}
	}
	t.Fatalf("%s has no constant %s", folder, name)
	return 0
}

// constantsOf keeps the imports of package time and the declaration of a constant.
func constantsOf(file *ast.File, name string) (kept []ast.Decl) {
	found := false
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST && g.Tok != token.IMPORT {
			continue
		}
		if g.Tok == token.IMPORT {
			g.Specs = onlyTime(g.Specs)
		}
		for _, n := range declaredNames(g) {
			found = found || n == name
		}
		kept = append(kept, g)
	}
	if !found {
		return nil
	}
	return kept
}

func onlyTime(specs []ast.Spec) (kept []ast.Spec) {
	for _, s := range specs {
		if s.(*ast.ImportSpec).Path.Value == `"time"` {
			kept = append(kept, s)
		}
	}
	return kept
}
