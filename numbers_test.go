package gopf

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestNumbersInTheDocsAreThoseOfTheCode(t *testing.T) {
	for page, want := range map[string]string{
		"docs/architecture.md": fmt.Sprintf("At most %d MiB wait for each resource", backlog>>20),
		"docs/startup.md":      fmt.Sprintf("`Settings.Process.UltimateExitingTimeout` (%d seconds)", int(DefaultSettings().Process.UltimateExitingTimeout.Seconds())),
		"docs/cli.md":          fmt.Sprintf("`Settings.Process.UltimateExitingTimeout`, %d seconds", int(DefaultSettings().Process.UltimateExitingTimeout.Seconds())),
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}
