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
	// nameLimit is how many characters Kubernetes allows after the slash.
	nameLimit = 63

	// ownedMark is added to the names on ReplicaSets of Deployments: Kubernetes
	// copies annotations of a Deployment there, and they must not be taken for
	// those of the ReplicaSet.
	ownedMark = "-ofDRS"
)

// Keys returns the annotation keys under which something is kept by its id, in
// the order in which they are read; all of them are written and purged.
//
// The first key is of the current form, with up to 63 characters after the
// slash. If v1 is on and makes a difference, the second one is of the form in
// which old versions of Kopf counted the prefix in. In both, ids that are too
// long are cut and get a hash instead. Marked says that the object is a
// ReplicaSet of a Deployment; see [Marked].
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

// Marked tells whether names on the object are marked as those of a ReplicaSet
// that belongs to a Deployment.
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

// Suffix returns the seven characters that stand for the part of a name which
// was cut off: a dash and a hash of the whole.
func Suffix(name string) string {
	hash, err := blake2b.New(4, nil)
	if err != nil {
		panic(err) // only for sizes and keys out of range, and these are constant
	}
	hash.Write([]byte(name))
	return "-" + hashReplacer.Replace(base64.RawStdEncoding.EncodeToString(hash.Sum(nil)))
}

// nameV2 hashes the id as it is, nameV1 what is left of it after replacing: the
// suffixes differ if there was something to replace.
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
		// Kopf cuts with Python's negative indices, which count from the end. Its
		// operators look for exactly such names.
		kept = max(0, len(runes)+kept)
	}
	return string(runes[:min(kept, len(runes))]) + suffix
}

// checkKeys tells why the API server would refuse the keys of the id.
func checkKeys(prefix, id string, v1 bool) error {
	for _, marked := range []bool{false, true} {
		for _, key := range Keys(prefix, id, marked, v1) {
			if name := strings.TrimPrefix(key, prefix+"/"); !validName.MatchString(name) {
				return fmt.Errorf("id %q cannot be kept in annotations: %q is not a valid name: "+
					"it must consist of letters, digits, '-', '_', '.', and begin and end with a letter or a digit", id, name)
			}
		}
	}
	return nil
}

func checkPrefix(prefix string) error {
	if prefix == "" || strings.Contains(prefix, "/") {
		return fmt.Errorf("%q cannot be the prefix of annotations: it must be a domain name", prefix)
	}
	return nil
}

var (
	nameReplacer = strings.NewReplacer("/", ".", "<", "_", ">", "_")
	hashReplacer = strings.NewReplacer("+", "-", "/", ".")
	validName    = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)
