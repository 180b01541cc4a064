package migrate

import (
	"strings"
	"testing"
)

func operatorGo(t *testing.T, src string) (code, report string) {
	t.Helper()
	r, err := Kopf([]Source{{"main.py", "import kopf, logging\n" + src + "\n"}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for name, content := range r.Files {
		if strings.HasSuffix(name, ".go") && name != "takeover_test.go" {
			all += string(content)
		}
	}
	return all, string(r.Files["MIGRATION.md"])
}

func TestDecoratorsBecomeDeclarations(t *testing.T) {
	const def = "\ndef f(spec, **_): pass"
	for src, want := range map[string]string{
		"@kopf.on.create('a.com', 'v1', 'as')":                                 `op.Resource("a.com/v1/as")`,
		"@kopf.on.create('a.com/v1', 'as')":                                    `op.Resource("a.com/v1/as")`,
		"@kopf.on.create('v1', 'pods')":                                        `op.Resource("v1/pods")`,
		"@kopf.on.create('', 'v1', 'pods')":                                    `op.Resource("v1/pods")`,
		"@kopf.on.create('as.v1.a.com')":                                       `op.Resource("as.v1.a.com")`,
		"@kopf.on.create(kind='A', group='a.com')":                             `kind.Kind("A").InGroup("a.com")`,
		"@kopf.on.event(kopf.EVERYTHING)":                                      `op.Resource("*")`,
		"@kopf.on.create('as', retries=3, backoff=1.5, timeout=60*60)":         `OnCreate("f", f, gopf.MaxAttempts(3), gopf.Backoff(1500*time.Millisecond), gopf.Timeout(time.Hour))`,
		"@kopf.on.create('as', errors=kopf.ErrorsMode.IGNORED)":                `OnCreate("f", f, gopf.ErrorsIgnored())`,
		"@kopf.on.delete('as', optional=True)":                                 `OnDelete("f", f, gopf.Optional())`,
		"@kopf.on.resume('as', deleted=True)":                                  `OnResume("f", f, gopf.AlsoDeleted())`,
		"@kopf.on.create('as')\n@kopf.on.delete('as')":                         `On(gopf.Create|gopf.Delete, "f", f)`,
		"@kopf.on.field('as', field='spec.x')":                                 `OnField("f", "spec.x", f)`,
		"@kopf.on.field('as', field='spec.x', old=1, new=kopf.PRESENT)":        `Field("spec.x").Changed(gopf.Is(1), gopf.Present).OnChange("f", f)`,
		"@kopf.on.update('as', field='spec.x', value='v', labels={'a': 'b'})":  `WithLabel("a", gopf.Is("b")).Field("spec.x").Value(gopf.Is("v")).OnUpdate("f", f)`,
		"@kopf.on.create('as', annotations={'a': kopf.ABSENT})":                `WithAnnotation("a", gopf.Absent).OnCreate("f", f)`,
		"@kopf.on.create('as', when=lambda spec, **_: spec.get('x') == 'y')":   `return at(c, "spec", "x") == any("y")`,
		"@kopf.on.create('as', labels={'a': lambda v, **_: v in ('x', None)})": `return value == any("x") || value == nil`,
		"@kopf.timer('as', interval=30, sharp=True, idle=10)":                  `Timer("f", 30*time.Second, f, gopf.Sharp(), gopf.Idle(10*time.Second))`,
		"@kopf.daemon('as', cancellation_timeout=1, initial_delay=2)":          `Daemon("f", f, gopf.StopTimeout(time.Second), gopf.InitialDelay(2*time.Second))`,
		"@kopf.on.validate('as', operations=['CREATE'], persistent=True)":      `Validate("f", f, gopf.Operations(admissionv1.Create), gopf.Persistent())`,
		"@kopf.on.mutate('as', subresource='status')":                          `Mutate("f", f, gopf.Subresource("status"))`,
		"@kopf.index('as', field='spec.x')":                                    `WithField("spec.x", gopf.Present), "f", f)`,
		"@kopf.on.startup(retries=2)":                                          `op.OnStartup("f", f, gopf.MaxAttempts(2))`,
		"@kopf.on.create('as', label_selector='a=b')":                          `Select("a=b").OnCreate("f", f)`,
	} {
		code, report := operatorGo(t, src+def)
		if !strings.Contains(code, want) || strings.Contains(report, "Left to do") {
			t.Errorf("%s: want %s in\n%s\n%s", src, want, code, report)
		}
	}
}

// Without these parts, a handler would be called for other objects or have another id.
func TestUnclearDeclarationsBecomeComments(t *testing.T) {
	for _, src := range []string{
		"@kopf.on.create('as', labels=compute())", "@kopf.on.create(plural())", "@kopf.on.create('as', id=name())", "@kopf.on.create('as', field=path())",
		"@kopf.on.create('as', **common())", "@kopf.on.create('as', surprise=1)", "@kopf.on.create", "@kopf.timer('as')", "@kopf.on.create('as', kind='A')", "@kopf.on.field('as')",
		"@kopf.on.create('as', value=1)",
	} {
		code, report := operatorGo(t, src+"\ndef f(**_): pass\n@kopf.on.create('bs')\ndef g(**_): pass")
		if !strings.Contains(code, "// TODO: main.py:2") || !strings.Contains(report, "Left to do\n\n* `main.py:2`") || strings.Contains(code, "\n\tas.") {
			t.Errorf("%s:\n%s\n%s", src, code, report)
		}
	}
	code, _ := operatorGo(t, "@kopf.on.create('as', labels={'a': 'b'})\n@kopf.on.create('as', labels={'a': 'c'})\ndef f(**_): pass")
	if !strings.Contains(code, `// as.WithLabel("a", gopf.Is("b")).OnCreate("f", f)`) || !strings.Contains(code, `is declared above for the same reason`) {
		t.Errorf("an id is declared twice:\n%s", code)
	}
}

func TestSettingsAreAssignedByName(t *testing.T) {
	code, report := operatorGo(t, `
@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = 'x/y'
    settings.execution.default_backoff = 10
    settings.batching.worker_limit = 5
    settings.posting.level = logging.WARNING
    settings.networking.error_backoffs = [1, 0.5]
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix='my.example.com')
    settings.watching.client_timeout = 600
    settings.peering.surprise = 1
    settings.peering.priority = number()
`)
	for _, want := range []string{
		`op.Settings.Persistence.Finalizer = "x/y"`, `op.Settings.Execution.DefaultBackoff = 10 * time.Second`, `op.Settings.Queueing.WorkerLimit = 5`,
		`op.Settings.Posting.Level = slog.LevelWarn`, `op.Settings.Networking.ErrorDelays = []time.Duration{time.Second, 500 * time.Millisecond}`,
		`op.Settings.Persistence.Base = storage.NewAnnotationBase("my.example.com")`,
	} {
		if !strings.Contains(code, want) {
			t.Errorf("want %s in\n%s", want, code)
		}
	}
	for _, want := range []string{"peering.surprise is unknown", "peering.priority = number() is not translated; see op.Settings.Peering.Priority", "watching.client_timeout has no counterpart"} {
		if !strings.Contains(report, want) {
			t.Errorf("want %s in\n%s", want, report)
		}
	}
	if strings.Contains(code, "OnStartup") || strings.Contains(code, "StateInStatus") {
		t.Errorf("too much:\n%s", code)
	}
}

func TestBodiesAreTranslatedAsAWholeOrNotAtAll(t *testing.T) {
	for src, want := range map[string]string{
		"raise kopf.TemporaryError('x', delay=30)":          `return gopf.RetryAfter(30*time.Second, errors.New("x"))`,
		"raise kopf.TemporaryError('x')":                    `return gopf.RetryAfter(time.Minute, errors.New("x"))`,
		"raise kopf.PermanentError(f'{name} is 100%')":      `return gopf.Permanent(fmt.Errorf("%v is 100%%", c.Object.GetName()))`,
		"raise ValueError('x')":                             `return errors.New("x")`,
		"return {'a': [1, True, None, name]}":               `c.SetResult(map[string]any{"a": []any{1, true, nil, c.Object.GetName()}})`,
		"patch.status['a']['b'] = spec['c']":                `c.Patch.Set("status.a.b", at(c, "spec", "c"))`,
		"patch.meta.labels['a.b/c'] = 'x'":                  `c.Patch.Set("/metadata/labels/a.b~1c", "x")`,
		"patch.spec['a'] = None":                            `c.Patch.Remove("spec.a")`,
		"logger.warning('%s is %d', name, retry)":           `c.Log.Warn(fmt.Sprintf("%v is %v", c.Object.GetName(), c.Retry))`,
		"kopf.info(body, reason='R', message='m')":          `c.Event(gopf.Normal, "R", "%v", "m")`,
		"doc = {'kind': 'X'}\n    kopf.adopt(doc)":          `if err := c.Adopt(doc); err != nil {`,
		"if spec.get('a') and not spec['b']:\n        pass": `if truthy(at(c, "spec", "a")) && !(truthy(at(c, "spec", "b"))) {`,
		"x = call(name)":                                    `return notTranslated("f")`,
		"patch.status['a'] = 1\n    call()":                 `return notTranslated("f")`,
		"x = 1":                                             `return notTranslated("f")`,
		"for x in spec: pass":                               `return notTranslated("f")`,
		"return call()":                                     `return notTranslated("f")`,
		"if spec['a'] > 3: return":                          `return notTranslated("f")`,
	} {
		code, _ := operatorGo(t, "@kopf.on.create('as')\ndef f(spec, name, patch, logger, retry, body, **_):\n    "+src)
		if !strings.Contains(code, "\t"+want) {
			t.Errorf("%s: want %s in\n%s", src, want, code)
		}
	}
}

func TestOldAndNewOfAFieldAreItsValues(t *testing.T) {
	const body = "\ndef f(old, new, logger, **_):\n    if old is None: return\n    logger.info(f'{old} -> {new}')"
	code, _ := operatorGo(t, "@kopf.on.field('as', field='spec.x')"+body)
	for _, want := range []string{"\tif first(c.OldValue()) == nil {", "\tc.Log.Info(fmt.Sprintf(\"%v -> %v\", first(c.OldValue()), first(c.NewValue())))", "func first("} {
		if !strings.Contains(code, want) {
			t.Errorf("want %s in\n%s", want, code)
		}
	}
	code, report := operatorGo(t, "@kopf.on.update('as')"+body)
	if !strings.Contains(code, `return notTranslated("f")`) || !strings.Contains(report, "translate the body of f") {
		t.Errorf("old and new are whole objects here:\n%s\n%s", code, report)
	}
}

func TestHostileInputIsReported(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"a syntax error": {"@kopf.on.create('as'\ndef f(**_): pass", "bad.py: line 1: the bracket ( is never closed"},
		"no handlers":    {"print 'hello'", "there are no Kopf handlers in bad.py"},
		"no text":        {"\x00", "bad.py: line 1: the file is not UTF-8 text"},
		"too many":       {strings.Repeat("@kopf.on.create('as')\ndef f(**_): pass\n", 3000), "there are 3000 handlers"},
	} {
		_, err := Kopf([]Source{{"bad.py", c.src}}, "x")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	code, _ := operatorGo(t, "@kopf.on.create('as')\ndef f(a, (b, c), **_):\n\tprint 'Python 2', `a`\n\texec 'x' in {}\n\traise ValueError, 'x'")
	if !strings.Contains(code, `return notTranslated("f")`) {
		t.Errorf("Python 2:\n%s", code)
	}
	// Constants that refer to each other, and names that Go does not allow.
	code, report := operatorGo(t, "A = B\nB = A\n@kopf.on.create(A)\ndef f(**_): pass\n@kopf.on.create('as')\ndef init(**_): pass\n@kopf.on.create('bs')\ndef größe(**_): pass")
	if !strings.Contains(report, "the resource A is not a constant") || !strings.Contains(code, "func initHandler(") {
		t.Errorf("%s\n%s", code, report)
	}
}

// Every input is translated or refused. The Go code is parsed when it is written.
func FuzzKopf(f *testing.F) {
	f.Add("import kopf\n@kopf.on.create('a', labels={'x': lambda v, **_: v in (1, None)}, when=kopf.not_(g))\ndef f(spec, patch, **_):\n  if spec['a']: patch.status['b'] = f'{spec!r} %'\n  else: return {'x': 1e5}\n")
	f.Add("from kopf import on as o\nX = 'a' + Y\nclass C:\n  @o.startup()\n  def f(settings, **_):\n    settings.posting.level = 20\n")
	f.Fuzz(func(t *testing.T, src string) {
		_, err := Kopf([]Source{{"fuzz.py", src}}, "fuzz")
		if err != nil && strings.Contains(err.Error(), "malformed") {
			t.Error(err)
		}
	})
}
