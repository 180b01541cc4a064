package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A program of a module with a replacement by a folder can neither be installed by its
// version, nor be built from a downloaded module.
func TestModulesOfProgramsNameNoFolders(t *testing.T) {
	programs, err := filepath.Glob(filepath.Join(root, "cmd", "*", "go.mod"))
	if err != nil || len(programs) < 2 {
		t.Fatalf("there are only %d nested modules with programs: %v", len(programs), err)
	}
	folder := regexp.MustCompile(`(?m)=>\s+"?(\.|/).*$`)
	for _, path := range append(programs, filepath.Join(root, "go.mod")) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if line := folder.Find(text); line != nil {
			t.Errorf("%s names a folder: %s", path, line)
		}
	}
	library, err := os.ReadFile(filepath.Join(root, "gopftest", "go.mod"))
	if err != nil || !folder.Match(library) {
		t.Errorf("the pattern does not recognize the folder of a library: %v", err)
	}
}
