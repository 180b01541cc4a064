package call

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running program with its pipes. It leads a new process group.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	input  *os.File // the other end of stdin; nil unless it is held

	exited chan struct{} // closed after the program has exited and its group was killed
	err    error         // the error of Wait; valid after exited
}

// start starts a program. With hold, the process keeps the other end of stdin open, for
// [process.unread].
func start(args, env []string, dir string, hold bool) (*process, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir = env, dir
	isolate(cmd)
	wait := watchExit(cmd)
	var files []*os.File
	pipe := func() (r, w *os.File, err error) {
		r, w, err = os.Pipe()
		files = append(files, r, w)
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll(files...)
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	if err := cmd.Start(); err != nil {
		closeAll(files...)
		return nil, err
	}
	closeAll(outW, errW)
	p := &process{cmd: cmd, stdin: inW, stdout: outR, stderr: errR, exited: make(chan struct{})}
	if hold {
		p.input = inR
	} else {
		closeAll(inR)
	}
	go func() {
		wait()
		p.err = cmd.Wait()
		signalGroup(cmd, syscall.SIGKILL) // children of the program that outlived it
		close(p.exited)
	}()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // there is nothing to flush
		}
	}
}

// stop ends the process group: SIGTERM, and SIGKILL after a delay. It returns when the
// program has exited.
func (p *process) stop() {
	select {
	case <-p.exited:
		return
	default:
	}
	signalGroup(p.cmd, syscall.SIGTERM)
	timer := time.NewTimer(killDelay)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		p.kill()
	}
}

// kill ends the process group at once.
func (p *process) kill() {
	signalGroup(p.cmd, syscall.SIGKILL)
	<-p.exited
}

// close releases the pipes. Reads from them end, even if a process that left the group
// still holds the other ends.
func (p *process) close() { closeAll(p.stdin, p.stdout, p.stderr, p.input) }

// unread returns how many bytes of its input an exited program has not read. It closes stdin.
// No write may be in progress.
func (p *process) unread() int64 {
	closeAll(p.stdin)
	n, _ := io.Copy(io.Discard, p.input) // at most the size of a pipe
	return n
}

// exitError returns the outcome of the program as an error. last is its last line on
// stderr.
func exitError(err error, last string) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	text := last
	if text == "" {
		text = "no message on stderr"
	}
	failure := fmt.Errorf("%s: %s", strings.TrimPrefix(exit.Error(), "exit status "), text)
	if code := exit.ExitCode(); code >= 0 {
		failure = fmt.Errorf("exit code %d: %s", code, text)
		switch code {
		case exitTempFail:
			return &Error{Err: failure}
		case exitDataErr:
			return &Error{Permanent: true, Err: failure}
		}
	}
	return failure
}

// Exit codes of sysexits.h that decide about retries.
const (
	exitDataErr  = 65
	exitTempFail = 75
)

// Limits of stderr.
const (
	maxLine   = 8 << 10
	maxLogged = 1 << 20 // bytes per call
)

// lines logs the standard error of a program, and keeps the last line.
type lines struct {
	mu      sync.Mutex
	log     *slog.Logger
	last    string
	logged  int
	dropped bool
}

// begin sets the logger of the next lines.
func (l *lines) begin(log *slog.Logger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log, l.last, l.logged, l.dropped = log, "", 0, false
}

// mute drops all later lines.
func (l *lines) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped = true
}

func (l *lines) lastLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// read logs the lines until the end of the stream.
func (l *lines) read(r io.Reader) {
	b := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := b.ReadSlice('\n')
		l.add(strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r\n"))
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = b.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

func (l *lines) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = cut(line, 1024)
	l.logged += len(line)
	if l.log == nil || l.dropped {
		return
	}
	if l.logged > maxLogged {
		l.dropped = true
		l.log.Warn("The program writes too much to stderr; the rest is not logged.")
		return
	}
	logLine(l.log, line)
}

// readLimited reads at most limit bytes. over reports that there are more.
func readLimited(r io.Reader, limit int64) (text []byte, over bool, err error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, limit+1))
	return b.Bytes(), n > limit, err
}
