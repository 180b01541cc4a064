// Package formats_test checks that every version of the framework reads the state that
// earlier versions left on objects: annotations, statuses and finalizers.
//
// A situation is an operator and a point in the life of an object. The files in testdata are
// dumps of the object at that point, in one folder for each version with different formats. A
// test restores a dump into an empty cluster, at the time of the dump, and starts the
// operator like a new process.
package formats_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

const (
	// writeTo names a folder that the test writes dumps of this version into.
	writeTo = "GOPF_FORMATS_WRITE"
	// readFrom names a folder with dumps of a newer version. This version must
	// not repeat finished work on them, and must complete the rest.
	readFrom = "GOPF_FORMATS_READ"
)

// situation is an operator, and how an object gets into a certain state under it.
type situation struct {
	name  string
	kind  *gopftest.Kind // nil means KopfExample, with a status subresource
	named string         // the resource if it is a well-known one
	// declare declares the operator. Restarted says that it is the one that finds
	// the dump; it differs where the situation is a new version of an operator.
	declare func(op *gopf.Operator, d *diary, restarted bool)
	// drive creates the object and leads it into the situation. Nil means that
	// only stored dumps exist, made by other frameworks.
	drive func(t *testing.T, s *stage)
	// resumed are the calls that are due at a restart. Usually there are none.
	resumed []string
	// writes is how many requests a restart may send at once. There are some only
	// where records move to another place, where Kopf left no handling note, and
	// where nothing holds a deletion any more.
	writes int
	// then are the calls after the delays in the dump.
	then []string
	// afterwards are calls that follow the handling itself. A version that cannot
	// read the handling note may leave them out.
	afterwards []string
	// base is the spec.field in the base in the end; "" means that the base is not
	// readable as text; gone means that the object is deleted.
	base string
	// foreign is an annotation in the form of a record that is not the operator's.
	foreign string
	// moved says that the restarted operator keeps its state in the status.
	moved bool
}

const gone = "(gone)"

// quiet is how long a restarted operator is watched before the first delay ends.
const quiet = 10 * time.Minute

// delay is how long handlers of unfinished situations ask to wait.
const delay = 30 * time.Minute

func TestARestartFindsWhatThisVersionLeft(t *testing.T) {
	folder := os.Getenv(writeTo)
	for _, s := range situations() {
		if s.drive == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			d := s.dump(t)
			if folder != "" {
				write(t, folder, s.name, d)
			}
			s.restart(t, read(t, d.encode(t)), strict)
		})
	}
}

func TestARestartFindsWhatEarlierVersionsLeft(t *testing.T) {
	for _, folder := range folders(t, "testdata") {
		t.Run(filepath.Base(folder), func(t *testing.T) { restartAll(t, folder, strict) })
	}
}

func TestARestartFindsWhatANewerVersionLeft(t *testing.T) {
	folder := os.Getenv(readFrom)
	if folder == "" {
		folder = filepath.Join("testdata", "newer")
	}
	restartAll(t, folder, lenient)
}

// TestAnOperatorWithStateInTheStatusFindsWhatIsInAnnotations restarts the operators of
// earlier versions and of Kopf with another place of their state.
func TestAnOperatorWithStateInTheStatusFindsWhatIsInAnnotations(t *testing.T) {
	for _, folder := range folders(t, "testdata") {
		for _, s := range slices.Concat(handled(), unfinished(), deletions(), ids(), sizesOfBases(), kopfs()) {
			raw, err := os.ReadFile(filepath.Join(folder, s.name+".json"))
			if err != nil {
				continue // TestEverySituationHasAFixture finds missing ones
			}
			s.moved = true
			t.Run(filepath.Base(folder)+"/"+s.name, func(t *testing.T) { s.restart(t, read(t, raw), strict) })
		}
	}
}

// TestEverySituationHasAFixture fails for a new situation without a file.
func TestEverySituationHasAFixture(t *testing.T) {
	var known []string
	for _, s := range situations() {
		known = append(known, s.name)
		found, err := filepath.Glob(filepath.Join("testdata", "*", s.name+".json"))
		if err != nil || len(found) == 0 {
			t.Errorf("%s: there is no file in testdata; make one with %s=FOLDER: %v", s.name, writeTo, err)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !slices.Contains(known, strings.TrimSuffix(filepath.Base(file), ".json")) {
			t.Errorf("%s: there is no situation of this name; fixtures stay for as long as the format may exist on objects", file)
		}
	}
}

// strictness is what is expected of a restart on a dump.
type strictness int

const (
	strict  strictness = iota // of this or an earlier version: exactly the same calls
	lenient                   // of a newer version: finished work is not repeated, the rest completes
)

// restartAll restarts the operators of all situations that have a dump in the
// folder.
func restartAll(t *testing.T, folder string, how strictness) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: there are no dumps: %v", folder, err)
	}
	for _, s := range situations() {
		raw, err := os.ReadFile(filepath.Join(folder, s.name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Run(s.name, func(t *testing.T) { s.restart(t, read(t, raw), how) })
	}
}

// dump leads a new object into the situation and returns what is there then.
func (s situation) dump(t *testing.T) dump {
	var d dump
	synctest.Test(t, func(t *testing.T) {
		st := s.stage(t)
		st.start()
		s.drive(t, st)
		st.settle()
		d = dump{Moment: time.Now().UTC(), Keys: st.diary.unfinished(), Object: st.object()}
		st.stop()
		time.Sleep(2 * delay) // for daemons that outlive their operator
	})
	return d
}

// restart starts the operator on a dump, as a new process, and checks what it
// does: first while all delays of the dump are in the future, then until the
// handling is complete, and then after one more restart.
func (s situation) restart(t *testing.T, d dump, how strictness) {
	var finished dump
	synctest.Test(t, func(t *testing.T) {
		st := s.stage(t)
		st.restarted = true
		time.Sleep(time.Until(d.Moment))
		st.cluster.Seed(t, d.Object)
		st.start()
		time.Sleep(quiet)
		st.settle()
		s.checkQuiet(t, st, how)
		time.Sleep(3 * delay)
		st.settle()
		s.checkCalls(t, st, how)
		if how == strict {
			st.diary.checkKeys(t, d.Keys)
		}
		s.checkEnd(t, st)
		if s.base != gone {
			finished = dump{Moment: time.Now().UTC(), Object: st.object()}
		}
	})
	if finished.Object == nil {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		st := s.stage(t)
		st.restarted = true
		time.Sleep(time.Until(finished.Moment))
		st.cluster.Seed(t, finished.Object)
		st.start()
		time.Sleep(quiet)
		st.settle()
		for _, call := range st.diary.all() {
			if !slices.Contains(s.resumed, call) && !strings.Contains(call, " resume ") {
				t.Errorf("a restart after the handling called %s", call)
			}
		}
		if n := len(st.writes()); n > 0 && len(st.diary.all()) == 0 {
			t.Errorf("a restart after the handling wrote %d times", n)
		}
	})
}

// folders returns the folders in a folder, except for dumps of newer versions and of
// operators with state in the status.
func folders(t *testing.T, in string) []string {
	entries, err := os.ReadDir(in)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range entries {
		if e.IsDir() && e.Name() != "newer" && e.Name() != statusFolder {
			paths = append(paths, filepath.Join(in, e.Name()))
		}
	}
	return paths
}
