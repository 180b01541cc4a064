package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stage runs the first stage of a Dockerfile in an empty folder, which stands for /src. Only
// the files of the build context are in it.
type stage struct {
	t       *testing.T
	context string // the build context
	src     string
	out     string // stands for /operator
	env     []string
}

var absolute = regexp.MustCompile(`(^|[ =/])(/src|/operator)\b`)

func (s *stage) path(text string) string {
	return absolute.ReplaceAllStringFunc(text, func(m string) string {
		at := strings.LastIndex(m, "/")
		return m[:at] + map[string]string{"/src": s.src, "/operator": s.out}[m[at:]]
	})
}

func (s *stage) run(instruction string) {
	s.t.Helper()
	word, rest, _ := strings.Cut(instruction, " ")
	switch word {
	case "WORKDIR":
		if rest != "/src" {
			s.t.Fatalf("unexpected folder: %s", instruction)
		}
	case "ENV":
		s.env = append(s.env, strings.Fields(s.path(rest))...)
	case "COPY":
		s.copy(strings.Fields(rest))
	case "RUN":
		cmd := exec.CommandContext(s.t.Context(), "sh", "-c", s.path(rest))
		cmd.Dir, cmd.Env = s.src, s.environment()
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Fatalf("%s: %v\n%s", instruction, err, out)
		}
	default:
		s.t.Fatalf("unknown instruction: %s", instruction)
	}
}

// copy copies the whole context, or files of its root.
func (s *stage) copy(args []string) {
	s.t.Helper()
	for _, from := range args[:len(args)-1] {
		var err error
		if from == "." {
			err = os.CopyFS(s.src, os.DirFS(s.context))
		} else {
			var text []byte
			if text, err = os.ReadFile(filepath.Join(s.context, from)); err == nil {
				err = os.WriteFile(filepath.Join(s.src, from), text, 0o644)
			}
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	// The checkout is not in the image.
	path := filepath.Join(s.src, "go.mod")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), ownCheckout(), "/not-in-the-image")), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// environment returns the environment of a container: an empty module cache. Third-party
// modules come from the cache of the user, as from a network proxy that is near.
func (s *stage) environment() []string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	downloaded, proxy, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	env := append(os.Environ(), "GOPROXY=file://"+downloaded+"/cache/download,"+proxy, "GOWORK=off", "GOFLAGS=", "GONOSUMDB=", "GOMODCACHE="+filepath.Join(filepath.Dir(s.src), "modules"))
	for _, variable := range s.env {
		if strings.HasPrefix(variable, "GOFLAGS=") {
			variable += " -modcacherw" // so that the test can remove it
		}
		env = append(env, variable)
	}
	return env
}

func TestTheImageOfANewProjectIsBuiltFromItsContextAlone(t *testing.T) {
	t.Parallel()
	project := newProject(t, "demo")
	text, err := os.ReadFile(filepath.Join(project, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := os.ReadFile(filepath.Join(project, ".dockerignore"))
	if err != nil || strings.Contains(string(ignored), proxyFolder) {
		t.Errorf("the modules are not in the build context: %s %v", ignored, err)
	}
	gitignore, err := os.ReadFile(filepath.Join(project, ".gitignore"))
	if err != nil || !strings.Contains(string(gitignore), "/"+proxyFolder+"/\n") {
		t.Errorf("git does not ignore the modules: %s %v", gitignore, err)
	}
	dir := t.TempDir()
	s := &stage{t: t, context: project, src: filepath.Join(dir, "src"), out: filepath.Join(dir, "operator")}
	if err := os.Mkdir(s.src, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "FROM ") && i > 0:
			if out, err := exec.CommandContext(t.Context(), s.out, "--help").CombinedOutput(); err != nil {
				t.Errorf("the operator does not start: %v\n%s", err, out)
			}
			return
		case strings.HasPrefix(line, "FROM "), strings.HasPrefix(line, "#"), line == "":
		default:
			s.run(line)
		}
	}
	t.Error("the Dockerfile has only one stage")
}

func TestThePublishedVersionNeedsNoProxy(t *testing.T) {
	p := &project{Name: "demo", Module: "example.com/demo", Group: "demo.example.com", Kind: "Demo", Plural: "demos", folder: t.TempDir()}
	if err := p.write(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Dockerfile", "Makefile", ".gitignore"} {
		text, err := os.ReadFile(filepath.Join(p.folder, name))
		if err != nil || strings.Contains(string(text), ".gopf") || strings.Contains(string(text), "\n\n\n") {
			t.Errorf("%s: got %s %v", name, text, err)
		}
	}
}
