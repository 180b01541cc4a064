package gopf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"gopf.dev/gopf/storage"
)

// Option is an option of [New].
type Option func(*Operator)

// IdentityOption is an option of [Identity]: [FormerlyNamed] or [StateInStatus].
type IdentityOption interface{ identify(*identity) }

type identityOption func(*identity)

func (o identityOption) identify(id *identity) { o(id) }

// Identity names the operator in the cluster by a domain name, in lower case. Operators
// with different names can handle the same objects. Choose a domain that you own, such as
// the API group of the operator, and never change it without [FormerlyNamed].
//
//	op := gopf.New(gopf.Identity("databases.example.com"))
//
// The name becomes:
//
//   - the prefix of annotations on objects, and the key in their status;
//   - the finalizer, "databases.example.com/finalizer";
//   - the reporting component of Kubernetes events, and the prefix of their names; the
//     reporting instance is the host name, which in a cluster is the name of the pod;
//   - the field manager of [client.Client.Apply], and the user agent of requests;
//   - the name of the Lease, and that of the webhook configurations for development.
//
// All annotations with the prefix belong to the operator: changes in them are not handled.
// A name with more than 63 characters is cut and gets a hash, except in annotations and the
// finalizer. Each of these settings can be changed afterwards in [Operator.Settings].
// Default: the names that Kopf uses, which all operators without an identity share.
//
// A name that is not a DNS subdomain is a declaration error. So is a name that begins with
// "kopf." and is not one of Kopf's own.
func Identity(name string, opts ...IdentityOption) Option {
	id := &identity{name: name, where: caller()}
	for _, o := range opts {
		o.identify(id)
	}
	return id.apply
}

// FormerlyNamed lists former names of the operator. "" means the names that Kopf uses.
//
//	gopf.Identity("new.example.com", gopf.FormerlyNamed("", "old.example.com"))
//
// State under a former name counts like state under the present one: a restart with the
// new name calls no handler and writes nothing. The next write to an object moves its
// state, and replaces the former finalizers. State in the status moves to annotations,
// unless [StateInStatus] keeps it there.
//
// No other operator may use a former name for the same resources. Stop all replicas with
// the former name before you start the first one with the new name. Keep the option until
// all objects have been changed or deleted.
func FormerlyNamed(names ...string) IdentityOption {
	return identityOption(func(id *identity) { id.former = append(id.former, names...) })
}

// identity has the names of an operator.
type identity struct {
	name     string
	former   []string
	settings PersistenceSettings // of [StateInStatus]
	where    string              // file and line of the declaration
}

// kopfFinalizer is the finalizer of operators without an identity.
const kopfFinalizer = "kopf.zalando.org/KopfFinalizerMarker"

// apply sets the names, or reports that they are invalid.
func (id *identity) apply(op *Operator) {
	if err := id.check(op); err != nil {
		op.problems = append(op.problems, fmt.Errorf("%s: %w", id.where, err))
		return
	}
	op.name = cutName(id.name)
	s := &op.Settings
	s.Persistence.Finalizer = finalizerOf(id.name)
	progress, base := progressOf(id.name, false), baseOf(id.name)
	s.Persistence.Progress, s.Persistence.Base = progress, base
	if len(id.former) > 0 {
		s.Persistence.Progress = storage.MovedProgress(progress, id.formerProgress()...)
		s.Persistence.Base = storage.MovedBase(base, id.formerBases()...)
	}
	for _, former := range id.former {
		s.Persistence.FormerFinalizers = append(s.Persistence.FormerFinalizers, finalizerOf(former))
	}
	op.own = s.Persistence
	op.own.StatusKey = statusKey(id.name)
	for _, former := range id.former {
		if key := statusKey(former); key != "" {
			op.own.FormerStatusKeys = append(op.own.FormerStatusKeys, key)
		}
	}
	if id.settings.keepsInStatus() {
		s.Persistence = id.settings
	}
	s.Posting.ReportingComponent = op.name
	s.Posting.EventNamePrefix = op.name + "-"
	if host, err := os.Hostname(); err == nil && host != "" {
		s.Posting.ReportingInstance = host
	}
	s.Election.Name = op.name
}

func (id *identity) check(op *Operator) error {
	if op.name != "" {
		return fmt.Errorf("Identity(%q): the operator already has the identity %q", id.name, op.name)
	}
	if wrong := validation.IsDNS1123Subdomain(id.name); len(wrong) > 0 {
		return fmt.Errorf("Identity(%q): the name is not a domain name: %s", id.name, strings.Join(wrong, "; "))
	}
	if strings.HasPrefix(id.name, "kopf.") && !ofKopf(id.name) {
		return fmt.Errorf("Identity(%q): a name that begins with \"kopf.\" looks like one of Kopf's own; use another name", id.name)
	}
	for _, former := range id.former {
		if former == id.name {
			return fmt.Errorf("FormerlyNamed(%q): this is the present name; list only former ones", former)
		}
		if wrong := validation.IsDNS1123Subdomain(former); former != "" && len(wrong) > 0 {
			return fmt.Errorf("FormerlyNamed(%q): the name is not a domain name: %s", former, strings.Join(wrong, "; "))
		}
	}
	return nil
}

// ofKopf reports whether the name is a prefix that Kopf recognizes as its own.
func ofKopf(name string) bool {
	return name == storage.DefaultPrefix || strings.HasSuffix(name, "."+storage.DefaultPrefix)
}

// formerProgress returns the storages of progress under the former names. Annotations
// with the present prefix are not in a former place.
func (id *identity) formerProgress() []storage.Progress {
	var all []storage.Progress
	for _, former := range id.former {
		switch {
		case former == "" && id.name == storage.DefaultPrefix:
			all = append(all, storage.NewStatusProgress(storage.DefaultName))
		case former == "":
			all = append(all, storage.DefaultProgress())
		default:
			all = append(all, progressOf(former, true))
		}
	}
	return all
}

// formerBases returns the storages of the base under the former names.
func (id *identity) formerBases() []*storage.AnnotationBase {
	var all []*storage.AnnotationBase
	for _, former := range id.former {
		switch {
		case former == "" && id.name == storage.DefaultPrefix:
		case former == "":
			all = append(all, storage.NewAnnotationBase(storage.DefaultPrefix))
		default:
			all = append(all, baseOf(former))
		}
	}
	return all
}

// progressOf returns the storage of progress under a name. v1 includes the annotations of
// old versions of Kopf: a second record for each handler with a long id.
func progressOf(name string, v1 bool) storage.Progress {
	annotations := storage.NewAnnotationProgress(name)
	annotations.V1 = v1
	return storage.SmartProgress(annotations, storage.NewStatusProgress(cutName(name)))
}

// baseOf returns the storage of the base under a name. It has a single annotation for any
// name, so settled objects are recognized without decoding them.
func baseOf(name string) *storage.AnnotationBase {
	base := storage.NewAnnotationBase(name)
	base.V1 = false
	return base
}

// finalizerOf returns the finalizer of an operator with the name. An empty name means
// Kopf's.
func finalizerOf(name string) string {
	if name == "" {
		return kopfFinalizer
	}
	return name + "/finalizer"
}

// formerFinalizers returns the former finalizers without the present one.
func (s PersistenceSettings) formerFinalizers() []string {
	return slices.DeleteFunc(slices.Clone(s.FormerFinalizers), func(f string) bool { return f == s.Finalizer })
}

// devName returns the name of the webhook configurations of a server for development. It
// differs from names for production: both may exist in one cluster.
func (op *Operator) devName() string {
	if op.name == "" {
		return "dev.gopf.dev"
	}
	return cutName("dev." + op.name)
}

// maxName is the length of the names that Kubernetes accepts everywhere.
const maxName = 63

// cutName cuts a long name and adds a hash of the whole.
func cutName(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "-" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:maxName-len(suffix)], "-.") + suffix
}
