package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflowsRunTargetsThatExist reads the workflows of the public forge: they must parse,
// call targets of the Makefile, and have no more permissions than they name.
func TestWorkflowsRunTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(found) < 5 {
		t.Fatalf("found only %v, %v", found, err)
	}
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Permissions map[string]string `json:"permissions"`
			Jobs        map[string]struct {
				TimeoutMinutes int    `json:"timeout-minutes"`
				Uses           string `json:"uses"`
				Steps          []struct {
					Uses string `json:"uses"`
					Run  string `json:"run"`
				} `json:"steps"`
			} `json:"jobs"`
		}
		if err := yaml.Unmarshal(raw, &workflow); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
			t.Errorf("%s: the permissions are %v; jobs must ask for more than read by themselves", path, workflow.Permissions)
		}
		for name, job := range workflow.Jobs {
			if job.Uses == "" && job.TimeoutMinutes == 0 {
				t.Errorf("%s: the job %s has no time limit", path, name)
			}
			for _, step := range job.Steps {
				for _, m := range regexp.MustCompile(`\bmake ([a-z-]+)`).FindAllStringSubmatch(step.Run, -1) {
					if !strings.Contains(string(makefile), "\n"+m[1]+":") {
						t.Errorf("%s: there is no target %s", path, m[1])
					}
				}
				if strings.Contains(step.Run, "git push") {
					t.Errorf("%s: the job %s pushes", path, name)
				}
			}
		}
	}
}

// TestIssueTemplatesParse checks that each template has a name, a description and questions.
func TestIssueTemplatesParse(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(root, ".github/ISSUE_TEMPLATE/*.yml"))
	if err != nil || len(found) < 3 {
		t.Fatalf("found only %v, %v", found, err)
	}
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var template struct {
			Name, Description string
			Body              []struct {
				Type       string
				Attributes struct{ Label string }
			}
		}
		if err := yaml.UnmarshalStrict(raw, &map[string]any{}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if filepath.Base(path) == "config.yml" {
			continue
		}
		if err := yaml.Unmarshal(raw, &template); err != nil || template.Name == "" || template.Description == "" || len(template.Body) == 0 {
			t.Errorf("%s has no name, description or questions: %v", path, err)
		}
		for _, question := range template.Body {
			if question.Attributes.Label == "" {
				t.Errorf("%s has a question without a label", path)
			}
		}
	}
}
