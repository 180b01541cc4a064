package admission

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// incoming is an AdmissionReview of version v1 or v1beta1, which have the same fields
// here. Objects are not decoded.
type incoming struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    *request `json:"request"`
}

type request struct {
	UID         string               `json:"uid"`
	Kind        groupVersionKind     `json:"kind"`
	Resource    groupVersionResource `json:"resource"`
	SubResource string               `json:"subResource"`
	Name        string               `json:"name"`
	Namespace   string               `json:"namespace"`
	Operation   string               `json:"operation"`
	UserInfo    jsontext.Value       `json:"userInfo"`
	Object      jsontext.Value       `json:"object"`
	OldObject   jsontext.Value       `json:"oldObject"`
	DryRun      bool                 `json:"dryRun"`

	user authenticationv1.UserInfo // UserInfo, decoded
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

type groupVersionResource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

const (
	reviewKind    = "AdmissionReview"
	reviewGroup   = "admission.k8s.io/"
	reviewVersion = reviewGroup + "v1"
)

// maxEcho limits the length of texts that the response repeats. API servers send about
// 40 bytes.
const maxEcho = 256

// maxUser limits the JSON of the user in a review, in bytes. Handlers may convert the user, and
// the lanes count the rest of a review only once. API servers send less: the groups
// of a user come from a token in the headers of requests, or from a certificate.
const maxUser = 256 << 10

// decode decodes a review. It fails if required fields are missing.
func decode(body []byte) (*incoming, error) {
	in := &incoming{}
	// Detecting duplicate names would double the time, and API servers do not send
	// them.
	if err := jsonv2.Unmarshal(body, in, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("decode the review: %w", err)
	}
	if in.APIVersion == "" {
		in.APIVersion = reviewVersion
	}
	if in.Kind == "" {
		in.Kind = reviewKind
	}
	switch r := in.Request; {
	case in.Kind != reviewKind || !strings.HasPrefix(in.APIVersion, reviewGroup):
		return nil, fmt.Errorf("not an AdmissionReview but a %s of %s", in.Kind, in.APIVersion)
	case r == nil:
		return nil, errors.New("the review has no request")
	case len(r.UID) > maxEcho || len(in.APIVersion) > maxEcho:
		return nil, errors.New("the uid or the apiVersion of the review is too long")
	case absent(r.UserInfo):
		return nil, errors.New("the request has no userInfo")
	case len(r.UserInfo) > maxUser:
		return nil, fmt.Errorf("the userInfo of the request has more than %d KiB", maxUser>>10)
	case r.Operation == "":
		return nil, errors.New("the request has no operation")
	case absent(r.Object) && absent(r.OldObject):
		return nil, errors.New("the request has neither object nor oldObject")
	}
	if err := jsonv2.Unmarshal(in.Request.UserInfo, &in.Request.user, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fmt.Errorf("decode the userInfo of the review: %w", err)
	}
	return in, nil
}

// isMalformed reports whether the error of [decode] is about the syntax of the review, such
// as an object with too many levels.
func isMalformed(err error) bool {
	_, malformed := errors.AsType[*jsontext.SyntacticError](err)
	return malformed
}

// decodeHead decodes the fields at the start of a review that cannot be read: those that a
// denial needs. A nil result means that some of them are missing. API servers send them
// first.
func decodeHead(head []byte) *incoming {
	in := &incoming{Request: &request{}}
	r := jsonvalue.Read(head)
	defer r.Close()
	text := func(into *string) error {
		token, err := r.ReadToken()
		if err == nil && token.Kind() == '"' {
			*into = token.String()
		}
		return err
	}
	if r.PeekKind() != '{' {
		return nil
	}
	err := r.Each(func(name []byte) error {
		switch string(name) {
		case "apiVersion":
			return text(&in.APIVersion)
		case "kind":
			return text(&in.Kind)
		case "request":
			if r.PeekKind() != '{' {
				return r.SkipValue()
			}
			return r.Each(func(name []byte) error {
				switch string(name) {
				case "uid":
					return text(&in.Request.UID)
				case "operation":
					return text(&in.Request.Operation)
				}
				return r.SkipValue()
			})
		}
		return r.SkipValue()
	})
	_ = err // the end of the head
	complete := in.Kind == reviewKind && strings.HasPrefix(in.APIVersion, reviewGroup) && in.Request.UID != "" && in.Request.Operation != ""
	if !complete || len(in.Request.UID) > maxEcho || len(in.APIVersion) > maxEcho {
		return nil
	}
	return in
}

// unknownNamespace is the namespace of reviews whose beginning has none. It is not a valid
// name.
const unknownNamespace = "?"

// maxNamespace is the length of the longest name of a namespace in Kubernetes.
const maxNamespace = 63

// namespaceOf returns the namespace in the beginning of a review, or [unknownNamespace]. Empty
// means that the object has none. API servers send the namespace before the objects, after
// names only. The beginning may be any text of any client.
func namespaceOf(beginning []byte) string {
	found, passed := unknownNamespace, false
	r := jsonvalue.Read(beginning)
	defer r.Close()
	if r.PeekKind() != '{' {
		return found
	}
	err := r.Each(func(name []byte) error {
		if string(name) != "request" || r.PeekKind() != '{' {
			return r.SkipValue()
		}
		err := r.Each(func(name []byte) error {
			switch string(name) {
			case "namespace":
				token, err := r.ReadToken()
				if err == nil && token.Kind() == '"' && len(token.String()) <= maxNamespace {
					found = token.String()
				}
				return cmp.Or(err, errFound)
			case "operation", "userInfo", "object", "oldObject":
				passed = true
			}
			return r.SkipValue()
		})
		passed = passed || err == nil
		return err
	})
	if passed && !errors.Is(err, errFound) {
		return ""
	}
	return found
}

// errFound ends a search.
var errFound = errors.New("found")

// proposes reports whether the request proposes an object to store, and the handlers
// decide about it. Without a decision, the request is denied, even if failures of the
// webhook are ignored: otherwise clients could evade the handlers by objects that cannot
// be read.
func (r *request) proposes() bool { return r.Operation == "CREATE" || r.Operation == "UPDATE" }

// review returns the request as handlers see it. Objects have their managedFields only
// if managed is true.
func (r *request) review(managed bool) (*handler.Review, error) {
	rv := &handler.Review{
		UID: r.UID, Operation: r.Operation, Subresource: r.SubResource, DryRun: r.DryRun, User: r.user,
		Kind: schema.GroupVersionKind(r.Kind),
	}
	var err error
	if rv.New, err = parse(r.Object, managed); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	if rv.Old, err = parse(r.OldObject, managed); err != nil {
		return nil, fmt.Errorf("oldObject: %w", err)
	}
	return rv, nil
}

// parse returns the body of an object. nil means that the review has none.
func parse(raw jsontext.Value, managed bool) (*object.Body, error) {
	if absent(raw) {
		return nil, nil
	}
	if managed {
		return object.ParseWhole(raw)
	}
	return object.Parse(raw)
}

func absent(raw jsontext.Value) bool { return len(raw) == 0 || raw.Kind() == 'n' }

// outgoing is the AdmissionReview with the response.
type outgoing struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Response   response `json:"response"`
}

type response struct {
	UID       string   `json:"uid"`
	Allowed   bool     `json:"allowed"`
	Warnings  []string `json:"warnings,omitempty"`
	Patch     []byte   `json:"patch,omitempty"`
	PatchType string   `json:"patchType,omitempty"`
	Status    *status  `json:"status,omitempty"`
}

type status struct {
	Message string `json:"message"`
	Code    int    `json:"code"`
}

// size estimates the bytes of the response in JSON.
func (o outgoing) size() int64 {
	size := 256 + len(o.Response.UID) + base64.StdEncoding.EncodedLen(len(o.Response.Patch))
	for _, text := range o.Response.Warnings {
		size += len(text) + 3
	}
	if s := o.Response.Status; s != nil {
		size += len(s.Message)
	}
	return int64(size)
}

// answer returns the response with the verdict, in the version of the incoming review.
func (in *incoming) answer(v verdict) outgoing {
	out := outgoing{APIVersion: in.APIVersion, Kind: in.Kind, Response: response{
		UID: in.Request.UID, Allowed: v.denial == nil, Warnings: oneLine(v.warnings),
	}}
	if v.denial != nil {
		out.Response.Status = &status{Message: v.denial.message, Code: v.denial.code}
	}
	if v.patch != nil {
		out.Response.Patch, out.Response.PatchType = v.patch, "JSONPatch"
	}
	return out
}

// oneLine replaces line breaks in warnings, in place. API servers send warnings as
// headers and silently drop those with line breaks.
func oneLine(warnings []string) []string {
	for i, w := range warnings {
		warnings[i] = strings.Join(strings.FieldsFunc(w, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	}
	return warnings
}

// maxPatch limits the JSON patch of a response. API servers store no larger objects.
const maxPatch = 4 << 20

// encodePatch returns the JSON patch of the operations. nil means that there are none.
func encodePatch(ops []patch.Op) ([]byte, error) {
	if len(ops) == 0 {
		return nil, nil
	}
	raw, err := jsonvalue.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encode the changes: %w", err)
	}
	if len(raw) > maxPatch {
		return nil, fmt.Errorf("the changes have %d bytes as a JSON patch, more than %d", len(raw), maxPatch)
	}
	return raw, nil
}
