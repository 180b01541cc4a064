package storage

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/blake2b"
)

const (
	// nameLimit is the maximum length of an annotation name after the slash.
	nameLimit = 63

	// ownedMark is a suffix of names on ReplicaSets of Deployments. Kubernetes copies the
	// annotations of a Deployment to its ReplicaSets; they must not be mistaken for those
	// of the ReplicaSet.
	ownedMark = "-ofDRS"
)

// Keys returns the annotation keys for an id, in the order in which they are read. All of
// them are written and purged.
//
// The first key has the current form, with up to 63 characters after the slash. If v1 is
// true and the result differs, the second key has the form of old versions of Kopf, which
// also counted the prefix. In both forms, an id that is too long is cut and gets a hash.
// marked means that the object is a ReplicaSet of a Deployment; see [Marked].
func Keys(prefix, id string, marked, v1 bool) []string {
	if marked {
		id += ownedMark
	}
	name := nameV2(id)
	keys := []string{prefix + "/" + name}
	if v1 {
		if old := nameV1(prefix, id); old != name {
			keys = append(keys, prefix+"/"+old)
		}
	}
	return keys
}

// firstKey returns the first of [Keys].
func firstKey(prefix, id string, marked bool) string {
	if marked {
		id += ownedMark
	}
	return prefix + "/" + nameV2(id)
}

// Marked reports whether the object is a ReplicaSet that belongs to a Deployment. Its
// annotation names then get a suffix.
func Marked(o Object) bool {
	if o.Identity().Kind != "ReplicaSet" {
		return false
	}
	value, _ := o.Lookup("metadata", "ownerReferences")
	owners, _ := value.([]any)
	for _, value := range owners {
		if owner, ok := value.(map[string]any); ok && owner["kind"] == "Deployment" {
			return true
		}
	}
	return false
}

// Suffix returns the seven characters that replace the end of a name that is too long: a
// dash and a hash of the whole name.
func Suffix(name string) string {
	hash, err := blake2b.New(4, nil)
	if err != nil {
		panic(err) // impossible: the size and the key are constants
	}
	hash.Write([]byte(name))
	return "-" + hashReplacer.Replace(base64.RawStdEncoding.EncodeToString(hash.Sum(nil)))
}

// nameV2 hashes the original id, nameV1 the id after replacements. The suffixes differ if
// there was something to replace.
func nameV2(id string) string {
	name := nameReplacer.Replace(id)
	if utf8.RuneCountInString(name) <= nameLimit {
		return name
	}
	suffix := Suffix(id)
	return string([]rune(name)[:nameLimit-len(suffix)]) + suffix
}

func nameV1(prefix, id string) string {
	name := nameReplacer.Replace(id)
	room := nameLimit - utf8.RuneCountInString(prefix) - 1
	if utf8.RuneCountInString(name) <= room {
		return name
	}
	runes, suffix := []rune(name), Suffix(name)
	kept := room - len(suffix)
	if kept < 0 {
		// Kopf uses Python's negative indices here, which count from the end. Its operators
		// look for exactly these names.
		kept = max(0, len(runes)+kept)
	}
	return string(runes[:min(kept, len(runes))]) + suffix
}

// checkKeys returns an error if the API server would reject the keys of the id.
func checkKeys(prefix, id string, v1 bool) error {
	for _, marked := range []bool{false, true} {
		for _, key := range Keys(prefix, id, marked, v1) {
			if name := strings.TrimPrefix(key, prefix+"/"); !validName.MatchString(name) {
				return fmt.Errorf("id %q cannot be stored in annotations: %q is not a valid name: "+
					"it must consist of letters, digits, '-', '_', '.', and begin and end with a letter or a digit", id, name)
			}
		}
	}
	return nil
}

func checkPrefix(prefix string) error {
	if prefix == "" || strings.Contains(prefix, "/") {
		return fmt.Errorf("invalid annotation prefix %q: it must be a domain name", prefix)
	}
	return nil
}

var (
	nameReplacer = strings.NewReplacer("/", ".", "<", "_", ">", "_")
	hashReplacer = strings.NewReplacer("+", "-", "/", ".")
	validName    = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)
