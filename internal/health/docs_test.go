package health_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gopf.dev/gopf/internal/health"
)

// block returns the first code block of the page after a heading.
func block(t *testing.T, heading, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	_, after, _ = strings.Cut(after, "\n```"+language+"\n")
	text, _, found := strings.Cut(after, "```\n")
	if !found {
		t.Fatalf("docs/health.md has no %s after %q", language, heading)
	}
	return text
}

// The texts in the page must match the code.
func TestTheDocumentationShowsTheActualTexts(t *testing.T) {
	s := sound()
	blue := lost(watching("kopfexamples.v1.kopf.dev", "blue"), 4*time.Minute+10*time.Second)
	blue.Err = errors.New("connection refused")
	green := blue
	green.Namespace = "green"
	pods := denied(watching("pods.v1", ""))
	pods.Since = ago(2*time.Hour + 5*time.Minute)
	s.Streams = []health.Stream{blue, green, pods}
	r := health.Judge(now, s)
	want := "$ curl -s localhost:8080/readyz\nnot ready\n" + strings.Join(r.Ready.Reasons, "\n") + "\nwarning: " + strings.Join(r.Warnings, "\n") + "\n"
	if diff := cmp.Diff(want, block(t, "Responses", "")); diff != "" {
		t.Errorf("docs/health.md: %s", diff)
	}

	s = sound()
	s.Refused, s.RefusedWhy = ago(5*time.Minute), errors.New("Unauthorized")
	r = health.Judge(now, s)
	r.Findings = nil
	var shown health.Report
	if err := json.Unmarshal([]byte(block(t, "Responses", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, shown); diff != "" {
		t.Errorf("docs/health.md: %s", diff)
	}
}

func TestTheDocumentedDeploymentIsYAML(t *testing.T) {
	var pod struct {
		Spec struct {
			Containers []struct {
				LivenessProbe, ReadinessProbe struct {
					HTTPGet struct{ Path, Port string }
				}
				Ports []struct{ Name string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(block(t, "In a Deployment", "yaml")), &pod); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Port != c.Ports[0].Name {
		t.Errorf("%+v", c)
	}
}
