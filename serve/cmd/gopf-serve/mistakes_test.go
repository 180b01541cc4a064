package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckFindsEachSeededMistakeWithItsLine checks a file in which each mistake has a
// comment. No other line has a problem.
func TestCheckFindsEachSeededMistakeWithItsLine(t *testing.T) {
	const folder = "testdata/mistakes"
	var out strings.Builder
	if err := run(t.Context(), []string{"check", filepath.Join(folder, "operator.yaml")}, &out, &out); err == nil {
		t.Fatal("no mistake was found")
	}
	seeded := 0
	for _, name := range []string{"operator.yaml", "five.yaml"} {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for line := 1; lines.Scan(); line++ {
			_, mistake, wrong := strings.Cut(lines.Text(), " # ")
			prefix := fmt.Sprintf("%s:%d: ", file.Name(), line)
			if found := strings.Contains("\n"+out.String(), "\n"+prefix); found != wrong {
				t.Errorf("%s%s is found: %v", prefix, mistake, found)
			}
			if wrong {
				seeded++
			}
		}
	}
	seen, lines := map[string]bool{}, map[string]int{}
	for line := range strings.Lines(out.String()) {
		if seen[line] {
			t.Errorf("reported twice: %s", line)
		}
		seen[line] = true
		name, rest, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(rest, ":")
		if lines[name+":"+number]++; lines[name+":"+number] > 1 {
			t.Errorf("one mistake is two problems: %s", line)
		}
	}
	if seeded < 50 {
		t.Errorf("only %d mistakes are seeded", seeded)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
