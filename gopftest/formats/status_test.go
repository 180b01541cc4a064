package formats_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// statusFolder has the dumps of operators that keep their state in the status. They are
// apart from the others: the same situations, with the state in another place.
const statusFolder = "status"

// inStatus returns the situations of operators that keep their state in the status from
// the first write on.
func inStatus() []situation {
	var all []situation
	for _, s := range slices.Concat(handled(), unfinished(), deletions(), ids(), sizesOfBases()) {
		s.moved = true
		all = append(all, s)
	}
	return all
}

func TestARestartFindsTheStateThatThisVersionLeftInTheStatus(t *testing.T) {
	folder := os.Getenv(writeTo)
	for _, s := range inStatus() {
		if s.drive == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			d := s.dump(t)
			if folder != "" {
				write(t, filepath.Join(folder, statusFolder), s.name, d)
			}
			s.restart(t, read(t, d.encode(t)), strict)
		})
	}
}

func TestARestartFindsTheStateThatEarlierVersionsLeftInTheStatus(t *testing.T) {
	for _, s := range inStatus() {
		if s.drive == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", statusFolder, s.name+".json"))
			if err != nil {
				t.Fatalf("make the file with %s=FOLDER: %v", writeTo, err)
			}
			s.restart(t, read(t, raw), strict)
		})
	}
}
