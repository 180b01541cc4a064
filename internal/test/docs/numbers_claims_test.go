package docs

import (
	"fmt"
	"go/importer"
	"go/token"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// claims returns the phrases with numbers that pages must contain, by path. Their numbers
// are those of the code. A phrase has only the words that show which number it is, so that
// the sentence around it can be rewritten.
func claims(t *testing.T) map[string][]string {
	t.Helper()
	c := constants{importer.ForCompiler(token.NewFileSet(), "source", nil)}
	constant := func(pkg, name string) int64 { return c.value(t, pkg, name) }
	duration := func(pkg, name string) time.Duration { return time.Duration(constant(pkg, name)) }
	s := gopf.DefaultSettings()
	review, probes := admission.DefaultReviewerOptions(), health.DefaultConfig()
	watch := stream.DefaultConfig(kind.Info{}, "")

	exit, ultimate := s.Queueing.ExitTimeout, s.Process.UltimateExitingTimeout
	levels, values, object := count(jsonvalue.MaxDepth), count(jsonvalue.MaxValues), mib(jsonvalue.MaxObject)
	subs := count(constant(".", "maxSubs"))
	recorded := count(constant("internal/execute", "longest"))
	message := count(constant("internal/recorder", "longest"))
	line := kib(constant("logs", "longestText"))
	stalled := seconds(duration("internal/health", "stalledReview"))
	costlyTime, costlyMemory := seconds(duration("internal/process", "costlyTime")), mib(constant("internal/process", "costlyMemory"))
	foreignLease := fmt.Sprintf("at most %d minutes", duration("internal/lease", "longestForeign")/time.Minute)
	lifetime := fmt.Sprint(int(peering.LongestLifetime.Hours()) / 24)

	first, most := duration("internal/process", "firstBackoff"), duration("internal/process", "mostBackoff")
	repairs := constant("internal/reconcile", "maxRepairs")

	token := fmt.Sprintf("%d minutes", constant("serve", "tokenSeconds")/60)
	callLimit := fmt.Sprintf("%d minutes", duration("serve/call", "DefaultExecTimeout")/time.Minute)

	kept, largest := mib(constant("serve/metacontroller", "keptSize")), mib(constant("serve/metacontroller", "largestSize"))
	largestSync := mib(constant("serve/metacontroller", "largestSync"))
	rules, ruleNames := count(constant("serve/metacontroller", "mostRules")), count(constant("serve/metacontroller", "mostNames"))
	keptRules := kib(constant("serve/metacontroller", "keptRulesSize"))
	selectorParts, allParts := count(constant("serve/metacontroller", "mostParts")), count(constant("serve/metacontroller", "allParts"))
	items, value, live := count(constant("serve/expr", "maxRange")), mib(constant("serve/expr", "maxSize")), mib(constant("serve", "maxLive"))
	evaluations := fmt.Sprintf("at least %d and at most %d", constant("serve", "leastEvaluations"), constant("serve", "mostEvaluations"))
	daemons, restart := count(constant("serve/call", "DefaultDaemons")), seconds(duration("serve/call", "lastRestart"))
	reviewed := fmt.Sprintf("half as many, but at least %d", constant("serve", "leastReviews"))

	pattern := fmt.Sprintf("at most %s bytes and %s steps", count(constant("serve/expr", "maxPattern")), count(constant("serve/expr", "maxInstructions")))
	evaluated := seconds(duration("serve/expr", "timeLimit")) + " seconds"

	sampling := duration("internal/page", "interval")

	return map[string][]string{
		"docs/serve.md": {
			"A call may take " + callLimit, "SIGKILL after " + seconds(duration("serve/call", "killDelay")) + " s",
			"The output may have " + mib(constant("serve/call", "DefaultOutput")) + " MiB", "expires after " + token,
			"a cost limit of " + count(constant("serve/expr", "costLimit")), "has at most " + value + " MiB of JSON", "makes at most " + items + " items", evaluations, reviewed,
			fmt.Sprintf("at first for %d ms and at most for %s s", duration("serve/call", "firstRestart").Milliseconds(), restart),
			"wait for " + seconds(duration("serve/call", "reviewPatience")) + " s at most", "by default " + daemons,
			"once in " + seconds(duration("serve/call", "yieldInterval")) + " s at most",
			pattern, "end after " + evaluated, fmt.Sprintf("costs 1 for %d steps", constant("serve/expr", "matchCost")),
			"may have " + live + " MiB of JSON", "More than " + kib(constant("serve", "freeLive")) + " KiB may wait",
		},
		"docs/operations.md": {
			fmt.Sprintf("of the last %d minutes", time.Duration(constant("internal/page", "maxPoints"))*sampling/time.Minute),
			"one page of " + count(constant("internal/page", "usualLimit")) + " objects", "every " + seconds(sampling) + " seconds",
			"the latest " + count(constant("internal/history", "slots")) + " steps of all objects in " + mib(constant("internal/history", "Budget")) + " MiB",
			"a permission for " + seconds(duration("internal/guard", "allowedFor")) + " seconds and a refusal for " + seconds(duration("internal/guard", "refusedFor")) + " seconds",
			"at most " + count(constant("internal/guard", "maxEntries")) + " verdicts", "At most " + count(constant("internal/guard", "atOnce")) + " requests are in review",
			"read again within " + seconds(duration("internal/guard", "rereadAfter")) + " seconds",
			fmt.Sprintf("ends after %d minutes", duration("internal/page", "streamTime")/time.Minute),
			fmt.Sprintf("for at most %d more minutes", (duration("internal/page", "streamTime")+duration("internal/guard", "allowedFor"))/time.Minute),
		},
		"docs/from-metacontroller.md": {
			"noticed after " + seconds(duration("serve/metacontroller", "credentialsAge")) + " s",
			"after at most " + seconds(duration("serve/metacontroller", "lastStart")) + " s",
			"A response may have " + mib(constant("serve/metacontroller", "largestBody")) + " MiB and " + count(constant("serve/metacontroller", "mostItems")) + " children",
			"an ETag have " + mib(constant("serve/metacontroller", "keptResponses")) + " MiB",
			"may have " + rules + " rules, and a rule " + ruleNames + " names", "may have " + selectorParts + " requirements and " + selectorParts + " values, and all selectors of the response " + allParts + " of",
			"that need more than " + keptRules + " KiB of memory are not kept",
			"an object of more than " + kept + " MiB of memory", "as JSON needs " + kept + " MiB",
			"an object of more than " + largest + " MiB of memory", "large objects need more than " + largestSync + " MiB",
			"are used. Default: " + seconds(duration("serve/metacontroller", "defaultDiscovery")) + " s",
		},
		"docs/from-side8.md": {"A script may take " + callLimit + " and print " + mib(constant("serve/call", "DefaultOutput")) + " MiB"},
		"docs/reconciliation.md": {
			fmt.Sprintf("after %s s, %s s, %s s, … up to %d minutes", seconds(first), seconds(2*first), seconds(4*first), most/time.Minute),
			fmt.Sprintf("%d times within a minute", repairs),
			"refer to " + count(constant("internal/children", "MaxEntries")) + " others",
		},
		"docs/admission.md": {
			fmt.Sprintf("`Overlap`, %d minutes", duration("webhook", "defaultOverlap")/time.Minute),
			mib(review.MaxBody) + " MiB | 413",
			"(`userInfo`) | " + kib(constant("internal/admission", "maxUser")) + " KiB | 400",
			seconds(review.ReadTimeout) + " s | 408",
			mib(review.Bytes) + " MiB | further reviews wait",
			inWords(t, duration("internal/admission", "slowAfter")) + " at less than " + kib(constant("internal/admission", "slowRate")) + " KiB/s",
			"`MaxConnections` of the server) | " + count(constant("webhook", "defaultMaxConnections")),
			"JSON patch of a mutating handler | " + mib(constant("internal/admission", "maxPatch")) + " MiB",
			"bodies larger than " + kib(constant("internal/connlimit", "shortBody")) + " KiB that have arrived and were not read yet | " + mib(constant("webhook", "mostUnread")) + " MiB",
			"a sixteenth of it, but at least " + mib(constant("webhook", "leastUnread")) + " MiB",
			fmt.Sprintf("at %s KiB each, but at least %d", kib(constant("webhook", "connectionMemory")), constant("webhook", "fewConnections")),
			fmt.Sprintf("concurrently | %d, and about %s MiB when decoded", review.InFlight, mib(review.Memory)),
			fmt.Sprintf("has up to %d | ", constant("webhook", "maxStreams")) + count(constant("internal/admission", "maxLetters")),
			"larger than " + kib(constant("internal/admission", "smallBody")) + " KiB that are being sent | " + mib(review.Bytes/3) + " MiB",
			fmt.Sprintf("| %s s, and %d s per MiB", seconds(review.ReadTimeout), 1<<20/constant("internal/admission", "slowRate")),
			"HTTP headers | " + kib(constant("webhook", "maxHeader")) + " KiB",
			"total time | " + seconds(review.Timeout) + " s",
			"a handler takes more than " + seconds(review.Timeout) + " s",
			"waiting for " + stalled + " seconds",
			"responds for another " + inWords(t, duration("internal/engine", "lingering")),
		},
		"docs/runtime.md": {
			"silent watch after " + seconds(watch.ProbeAfter) + " s",
			"replaces it after " + seconds(watch.InactivityTimeout) + " s",
			"At most " + mib(constant(".", "backlog")) + " MiB wait",
		},
		"docs/arguments.md": {"`Settings.Queueing.ExitTimeout` (" + seconds(exit) + " s)"},
		"docs/cli.md": {
			"`Settings.Process.UltimateExitingTimeout`, " + seconds(ultimate) + " seconds", "truncated at " + line + " KiB",
			fmt.Sprintf("exits within %s seconds", seconds(duration("cmd/gopf", "settled"))),
			fmt.Sprintf("holds its lease for %d hours", duration("cmd/gopf", "debuggerLease")/time.Hour),
			fmt.Sprintf("lasts %d hours without a renewal", duration("cli", "debuggerLease")/time.Hour),
		},
		"docs/configuration.md": {"Names of more than " + count(constant(".", "maxName")) + " characters are cut"},
		"docs/continuity.md":    {inWords(t, exit) + " to finish (`Settings.Queueing.ExitTimeout`)"},
		"docs/daemons.md":       {"`Settings.Background.CancellationPolling`, " + seconds(s.Background.CancellationPolling) + " s"},
		"docs/differences.md": {
			"cut to " + recorded + " characters",
			"more than " + subs + " sub-handlers",
			"More than " + count(constant("diff", "maxPlaces")) + " differences",
			"more than " + levels + " levels, " + values + " values",
			"or " + object + " MiB",
			fmt.Sprintf("delays of up to %d ms", duration("internal/apply", "ConflictDelay").Milliseconds()),
			seconds(ultimate) + " seconds, less than the default grace period",
			fmt.Sprintf("pages of %d objects", kube.PageSize),
			fmt.Sprintf("lists of %d objects", constant("internal/stream", "longList")),
			"backoff of at most " + seconds(duration("internal/stream", "maxOverloadPause")) + " s",
			"at most " + seconds(duration("internal/process", "maxOutageDelay")) + " s once",
			"probed after " + seconds(watch.ProbeAfter) + " s",
			seconds(s.Networking.RequestTimeout) + " s (`Settings.Networking.RequestTimeout`)",
			seconds(s.Networking.ConnectTimeout) + " s (`Settings.Networking.ConnectTimeout`)",
			fmt.Sprintf("at most %d minutes", duration("internal/kube", "maxRetryAfter")/time.Minute),
			"at most " + lifetime + " days without a renewal",
			"canceled after " + seconds(probes.ProbeLimit) + " s",
			"at most " + count(constant("internal/recorder", "backlog")) + " of a namespace and " + count(constant("internal/recorder", "wholeBacklog")) + " in total, and namespaces take turns; further ones are dropped",
			"at most " + message + " characters but more than " + message + " bytes",
			"shortened to " + message + " bytes",
			"cut at " + line + " KiB",
			"larger than " + mib(review.MaxBody) + " MiB",
			"longer than " + seconds(review.ReadTimeout) + " s to arrive",
		},
		"docs/errors.md":    {"`Settings.Execution.DefaultBackoff`, " + seconds(s.Execution.DefaultBackoff) + " s"},
		"docs/events.md":    {"longer than " + message + " characters", "at most " + message + " bytes"},
		"docs/from-kopf.md": {"time out after " + seconds(s.Networking.RequestTimeout) + " s"},
		"docs/handlers.md":  {"declare " + subs + " sub-handlers"},
		"docs/health.md": {
			"at least " + inWords(t, duration("internal/health", "leastStuck")),
			"overdue for more than " + inWords(t, duration("internal/health", "stuckAlarm")),
			seconds(watch.InactivityTimeout) + " seconds by default",
			"cached for " + inWords(t, probes.ProbeAge),
			"After " + seconds(probes.ProbeLimit) + " seconds, the probes are canceled",
			"was served for " + stalled + " seconds",
			"waiting for " + inWords(t, duration("internal/health", "lateReview")) + " or more, there is a warning",
		},
		"docs/indexing.md": {"there for " + seconds(stream.RefusalGrace) + " seconds"},
		"docs/metrics.md":  {"At " + stalled + " seconds and more, `/readyz` is red"},
		"docs/scopes.md": {
			fmt.Sprintf("more than %d namespaces", constant("internal/controller", "manyNamespaces")),
			fmt.Sprintf("again every %d minutes", duration("internal/serving", "reachInterval")/time.Minute),
			"after " + seconds(duration("internal/serving", "refusalGrace")) + " seconds",
		},
		"docs/peering.md": {
			"after its lifetime, " + seconds(s.Peering.Lifetime) + " s",
			"takes over after " + seconds(s.Election.Duration) + " s",
			"`Peering.Lifetime` | " + seconds(s.Peering.Lifetime) + " s",
			"`Election.Duration` | " + seconds(s.Election.Duration) + " s",
			"`Election.RenewDeadline` | " + seconds(s.Election.RenewDeadline) + " s",
			"`Election.RetryPeriod` | " + seconds(s.Election.RetryPeriod) + " s",
			"at most " + lifetime + " days",
			foreignLease + " for a holder",
		},
		"docs/startup.md": {
			"`Settings.Queueing.ExitTimeout` (" + seconds(exit) + " s)",
			"`Settings.Process.UltimateExitingTimeout` (" + seconds(ultimate) + " seconds)",
		},
		"docs/timers.md": {"`Settings.Queueing.ExitTimeout` (" + seconds(exit) + " s)"},
		"docs/troubleshooting.md": {
			"annotations are limited to " + kib(storage.AnnotationsLimit) + " KiB",
			levels + " levels deep",
			"more than " + values + " values",
			"or " + object + " MiB",
			"more than " + costlyTime + " s without its handlers",
			"an estimated " + costlyMemory + " MiB",
			"delay after an error is " + seconds(s.Execution.DefaultBackoff) + " s",
		},
		"docs/resources.md": {
			"more than " + mib(footprint.MaxMemory) + " MiB as the type",
			"with more than " + count(constant("internal/footprint", "maxQuantity")) + " characters or an exponent of more than " + count(constant("internal/footprint", "maxExponent")) + " digits",
		},
		"docs/tenancy.md": {
			"progress waits for " + inWords(t, duration("internal/controller", "costlyGrace")) + " at most",
		},
		"docs/trust.md": {
			"up to " + count(constant("internal/children", "MaxEntries")) + ", and deletes none",
			"tries again after " + seconds(duration("internal/process", "teardownPolling")) + " seconds",
			count(constant("internal/reconcile", "maxStrays")) + " are deleted every " + seconds(duration("internal/reconcile", "strayPause")) + " seconds",
			"at most " + count(constant("internal/process", "farBurst")) + " times at once",
			"may have at most " + count(constant("internal/policy", "maxAnnotations")) + " annotations",
		},
		"SECURITY.md": {
			"grows to " + restart + " s", "at most " + daemons + " programs",
			"A page of a list has at most " + mib(kube.LargePage) + " MiB", "The first " + kib(constant("internal/process", "freeReads")) + " KiB are free", kib(constant("internal/process", "firstReads")) + " KiB are taken at once",
			"with more than " + count(constant(".", "fewNested")) + " objects in its paths, with " + kib(constant(".", "nestedMemory")) + " KiB for each",
			evaluations, reviewed, "The value has at most " + value + " MiB", pattern, "ends after " + evaluated, "at most " + items + " items", "gets at most " + live + " MiB of live children",
			"have up to " + mib(constant("serve/call", "DefaultOutput")) + " MiB per object",
			"inputs above " + kib(constant("serve/call", "smallInput")) + " KiB wait until there is memory: " + mib(constant("serve/call", "allInputs")) + " MiB for all",
			"at least " + seconds(duration("serve/call", "reviewTime")) + " s for each review",
			"has at most " + mib(constant("serve/metacontroller", "largestBody")) + " MiB and " + count(constant("serve/metacontroller", "mostItems")) + " children",
			"together keep " + mib(constant("serve/metacontroller", "keptResponses")) + " MiB of", "fails after " + seconds(duration("serve/metacontroller", "relationWait")) + " s",
			"has at most " + rules + " rules with " + ruleNames + " names each, and " + allParts + " requirements",
			keptRules + " KiB of its rules are kept",
			"with at most " + selectorParts + " requirements and " + selectorParts + " values each",
			kib(constant("internal/connlimit", "baseBytes")) + " KiB at once, then " + kib(constant("internal/connlimit", "bytesPerSec")) + " KiB per second",
			"allows " + kib(constant("internal/connlimit", "aheadBytes")) + " KiB more",
			"service account for " + token,
			"that need more than " + kept + " MiB of memory", "an object above " + largest + " MiB", "large objects above " + largestSync + " MiB", "of those below " + kept + " MiB",
			"keeps at most " + mib(constant("internal/childwatch", "maxLarge")) + " MiB per namespace",
			"keeps no content of those with " + kib(constant("internal/childwatch", "hugeChild")) + " KiB of JSON or more",
			"Of a status with " + kib(constant("internal/childwatch", "hugeStatus")) + " KiB of JSON or more, only parts of up to " + kib(constant("internal/childwatch", "smallPart")) + " KiB are read",
			"at most " + mib(jsonvalue.MaxStored) + " MiB uncompressed",
			levels + " levels and " + values + " values",
			"size limit of " + object + " MiB",
			"An object of more than " + mib(footprint.MaxMemory) + " MiB does not fit",
			"with more than " + count(constant("internal/footprint", "maxQuantity")) + " characters or an exponent of more than " + count(constant("internal/footprint", "maxExponent")) + " digits",
			"in objects of " + kib(constant("internal/footprint", "longObject")) + " KiB or more for a time or duration with more than " + count(constant("internal/footprint", "maxTime")) + " characters",
			"more than " + kib(constant("internal/footprint", "Small")) + " KiB and four times the memory",
			"Errors of decoders are cut at " + kib(constant("internal/object", "longestError")) + " KiB, and messages of denials at " + kib(constant("internal/admission", "longestDenial")) + " KiB",
			"Each counts with " + count(constant("internal/childwatch", "referenceMemory")) + " bytes and its name",
			"requests more than " + mib(constant("internal/process", "maxText")) + " MiB in that time",
			"hold at most " + mib(constant("internal/controller", "modestTurns")) + " MiB of such objects",
			"declares more than " + kib(constant("internal/process", "freeRoom")) + " KiB of children",
			"if that takes at most " + kib(constant("internal/process", "largestOwner")) + " KiB",
			"more than " + count(constant(".", "fewSubs")) + " sub-handlers",
			"there is memory: " + mib(constant("internal/controller", "modestTurns")/2) + " MiB",
			"not more than " + mib(constant("internal/childwatch", "maxReferences")) + " MiB. Each counts",
			count(constant("internal/controller", "callMemory")/1024) + " KiB and its turn",
			"with another " + count(constant("internal/controller", "declaringMemory")/1024) + " KiB",
			"At least " + count(constant("internal/controller", "leastCalls")) + " run",
			"fill the queue of a resource for " + count(int64(duration("internal/controller", "listPatience").Seconds())) + " s",
			"fill twice the queue for " + count(int64(duration("internal/controller", "listPatience").Seconds())) + " s",
			"if the client has " + count(constant("internal/admission", "maxLetters")) + " open",
			"Objects that take less than about " + kib(constant("internal/controller", "heldObject")) + " KiB of memory do not count",
			"after " + inWords(t, duration("internal/controller", "costlyPatience")) + " a warning names",
			"without such a turn wait for " + inWords(t, duration("internal/controller", "costlyGrace")) + " at most",
			"more than " + costlyTime + " s in the framework's own code",
			"more than " + costlyMemory + " MiB of values",
			"at most " + mib(constant("internal/controller", "costlyTurns")) + " MiB of memory together",
			"an object of " + kib(constant("internal/process", "heavyObject")) + " KiB or more in flight",
			"objects of " + kib(constant("internal/process", "heavyPart")) + " KiB or more: four of them",
			"count as one of " + kib(constant("internal/process", "heavyObject")) + " KiB",
			"have more than " + kib(constant("internal/reconcile", "largestManaged")) + " KiB",
			"from about " + kib(constant("internal/controller", "modestTurn")) + " KiB of memory",
			"take at most " + mib(constant("internal/controller", "modestTurns")) + " MiB together",
			"not more than " + mib(constant("internal/controller", "maxModestTurns")>>10) + " GiB",
			"a tenth of the memory limit, or " + mib(constant("internal/controller", "costlyBacklog")) + " MiB",
			"a 28th, or " + mib(constant("internal/controller", "packedBacklog")) + " MiB",
			"no such turn ends for " + inWords(t, duration("internal/controller", "costlyPatience")),
			"counts for at most " + lifetime + " days",
			"a Lease for " + foreignLease,
			"memory limit of " + mib(constant("internal/test/e2e/attacks", "memoryLimit")) + " MiB",
			"another tenant within " + seconds(duration("internal/test/e2e/attacks", "inTime")) + " seconds",
		},
	}
}

// foreign is a phrase whose numbers are not those of a constant, and the reason.
type foreign struct{ phrase, why string }

const (
	kubernetes = "a property of Kubernetes"
	kopf       = "a property of Kopf"
	sample     = "a value in a sample"
	builds     = "the time of a build, which depends on the machine"
	otherTest  = "checked by "
)

var elsewhere = map[string][]foreign{
	"docs/admission.md": {
		{"`terminationGracePeriodSeconds` of 30 s", kubernetes},
		{"objects of up to 1.5 MiB", kubernetes},
	},
	"docs/cli.md":        {{"built 1.2 s → swapped 0.2 s", sample}},
	"docs/continuity.md": {{"`60/1` means 60 seconds", sample}},
	"docs/differences.md": {
		{"waits up to 5 seconds", kopf},
		{"10 minutes |", kopf},
		{"up to 21 s for a request, 610 s for an object", kopf},
		{"replaced after 70 s", kopf},
		{"retried for 54 s", kopf},
		{"Request timeout | 300 s", kopf},
	},
	"docs/from-kopf.md":  {{"instead of 300 s", kopf}},
	"docs/guarantees.md": {{"within 5 s", otherTest + "TestARestoreFromABackupIsNoticedWithinSeconds"}},
	"docs/testing.md":    {{"every six hours", sample}},
	"docs/trust.md":      {{"of 16 bytes or more", otherTest + "TestSecretKeysNeedAsManyBytesAsThePageSays"}},
	"docs/tutorial.md": {
		{"every half a minute", kubernetes},
		{"takes about 8 minutes", builds},
	},
	"docs/troubleshooting.md": {{"in about 8 minutes", builds}},
	"SECURITY.md": {
		{"five working days", "a promise of the maintainers"},
		{"within 30 days", "a promise of the maintainers"},
		{"up to 1.5 MiB", kubernetes},
		{"each target for ten minutes", "the value of FUZZTIME in the command"},
	},
}

func phrasesOf(list []foreign) (phrases []string) {
	for _, f := range list {
		phrases = append(phrases, f.phrase)
	}
	return phrases
}

func seconds(d time.Duration) string { return fmt.Sprint(d.Seconds()) }
func mib(n int64) string             { return fmt.Sprint(n >> 20) }
func kib(n int64) string             { return fmt.Sprint(n >> 10) }

// count returns a number with thousands separators.
func count(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// inWords returns a duration as pages spell it out.
func inWords(t *testing.T, d time.Duration) string {
	t.Helper()
	text, ok := map[time.Duration]string{
		500 * time.Millisecond: "half a second",
		time.Second:            "one second",
		2 * time.Second:        "two seconds",
		10 * time.Second:       "ten seconds",
		time.Minute:            "one minute",
		2 * time.Minute:        "two minutes",
	}[d]
	if !ok {
		t.Errorf("no words for %s: add them here and change the page", d)
	}
	return text
}
