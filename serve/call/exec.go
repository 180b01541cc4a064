package call

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/serve/spec"
)

// Options configure the calls of a handler.
type Options struct {
	Call spec.Call
	// Dir is the working directory of programs, and the folder of relative paths.
	Dir string
	// Inputs limits the memory for inputs. Callers may share it. nil means no limit.
	Inputs *queue.Budget
	// Environ returns the environment of the operator. nil means os.Environ.
	Environ func() []string
}

func (o *Options) output() int64 {
	if o.Call.MaxOutput > 0 {
		return o.Call.MaxOutput
	}
	return DefaultOutput
}

func (o *Options) timeout(otherwise time.Duration) time.Duration {
	if o.Call.CallTimeout > 0 {
		return o.Call.CallTimeout
	}
	return otherwise
}

// args returns the command line. A path of a program with a slash is relative to Dir.
func (o *Options) args() []string {
	args := append([]string(nil), o.Call.Exec...)
	if strings.Contains(args[0], "/") && !filepath.IsAbs(args[0]) {
		args[0] = filepath.Join(o.Dir, args[0])
		if absolute, err := filepath.Abs(args[0]); err == nil {
			args[0] = absolute
		}
	}
	return args
}

// environment returns the variables of a program: PATH, HOME, and those that the file
// lists. Everything else in the environment of the operator may be a secret.
func (o *Options) environment() []string {
	environ := os.Environ
	if o.Environ != nil {
		environ = o.Environ
	}
	values := map[string]string{}
	for _, v := range environ() {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	var env []string
	for _, v := range append([]string{"PATH", "HOME"}, o.Call.Env...) {
		name, value, given := strings.Cut(v, "=")
		if !given {
			if value, given = values[name]; !given {
				continue
			}
		}
		env = append(env, name+"="+value)
	}
	return env
}

// variables describe the call to a program.
func variables(r *Request) []string {
	return []string{
		"GOPF_HANDLER=" + r.Input.Handler, "GOPF_REASON=" + r.Input.Reason,
		"GOPF_NAMESPACE=" + r.Namespace, "GOPF_NAME=" + r.Name, "GOPF_RETRY=" + strconv.Itoa(r.Input.Retry),
	}
}

// Exec calls a program for each call. Namespaces take turns, and one cannot have all
// processes; for reviews, this holds for clients: see [Acquire].
type Exec struct {
	options Options
	slots   *queue.Slots
}

// NewExec returns a caller of a program.
func NewExec(o Options) *Exec {
	n := o.Call.Processes
	if n == 0 {
		n = 2 * runtime.NumCPU()
	}
	return &Exec{options: o, slots: queue.NewSlots(n)}
}

// Close does nothing: no process outlives its call.
func (*Exec) Close() {}

// Call runs the program once.
func (e *Exec) Call(ctx context.Context, r *Request) (Output, error) {
	release, ok := Acquire(e.slots, r.Input.Review, r.Namespace, ctx.Done(), nil)
	if !ok {
		return Output{}, context.Cause(ctx)
	}
	defer release()
	ctx, cancel := limited(ctx, e.options.timeout(DefaultExecTimeout))
	defer cancel()
	return e.options.once(ctx, r)
}

// once runs the program for one call.
func (o *Options) once(ctx context.Context, r *Request) (Output, error) {
	if ctx.Err() != nil {
		return Output{}, context.Cause(ctx)
	}
	env := append(o.environment(), variables(r)...)
	if o.Call.Cluster {
		if r.Kubeconfig == nil {
			return Output{}, errors.New("there is no cluster for the program")
		}
		path, remove, err := r.Kubeconfig(ctx)
		if err != nil {
			return Output{}, fmt.Errorf("give the program access to the cluster: %w", err)
		}
		defer remove()
		env = append(env, "KUBECONFIG="+path)
	}
	input, release, err := o.input(ctx, r, r.Input)
	if err != nil {
		return Output{}, err
	}
	text, err := o.run(ctx, r.Log, input, release, env)
	if err != nil {
		return Output{}, err
	}
	return ParseOutput(text)
}

// Run runs a program without input and returns its output, with the limits of options.
func Run(ctx context.Context, o Options, env []string, log *slog.Logger) ([]byte, error) {
	ctx, cancel := limited(ctx, o.timeout(DefaultExecTimeout))
	defer cancel()
	return o.run(ctx, log, nil, func() {}, env)
}

// run runs a program. It calls release when the program has read its input, or has ended.
func (o *Options) run(ctx context.Context, log *slog.Logger, input []byte, release func(), env []string) ([]byte, error) {
	p, err := start(o.args(), env, o.Dir, false)
	if err != nil {
		release()
		return nil, fmt.Errorf("start the program: %w", err)
	}
	stderr := &lines{log: log}
	var pipes sync.WaitGroup // of goroutines that end when their pipe is closed
	defer func() {
		p.close()
		stderr.mute()
		pipes.Wait()
	}()
	pipes.Go(func() {
		defer release()
		_, _ = p.stdin.Write(input) // a program may exit without reading
		closeAll(p.stdin)
	})
	logged := make(chan struct{})
	pipes.Go(func() {
		defer close(logged)
		stderr.read(p.stderr)
	})
	type output struct {
		text []byte
		over bool
	}
	read := make(chan output, 1)
	pipes.Go(func() {
		text, over, _ := readLimited(p.stdout, o.output())
		read <- output{text, over}
	})

	var out output
	done := false
	for exited := false; !exited; {
		select {
		case out = <-read:
			done = true
			if out.over {
				p.kill()
				return nil, fmt.Errorf("the output has more than %d bytes", o.output())
			}
			read = nil // wait for the exit
		case <-p.exited:
			exited = true
		case <-ctx.Done():
			p.stop()
			return nil, context.Cause(ctx)
		}
	}
	// A process that left the group may hold the pipes: it must not keep the call waiting.
	late := time.NewTimer(pipeDelay)
	defer late.Stop()
	if !done {
		select {
		case out = <-read:
		case <-late.C:
			return nil, errors.New("a child of the program still holds its output")
		}
	}
	select {
	case <-logged:
	case <-late.C:
	}
	if out.over {
		return nil, fmt.Errorf("the output has more than %d bytes", o.output())
	}
	return out.text, exitError(p.err, stderr.lastLine())
}

// pipeDelay limits the time in which the pipes of an exited program drain.
const pipeDelay = 2 * time.Second
