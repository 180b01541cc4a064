//go:build !gopf_lean

package gopftest

import (
	"context"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	celplugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
)

// matchers compiles and caches the match conditions of webhooks. The code of the real
// API server evaluates them, with its limits. Conditions that use the authorizer fail,
// because the in-memory cluster has none.
type matchers struct {
	once     sync.Once
	compiler celplugin.ConditionCompiler
	compiled sync.Map // matchers by their conditions
}

func (m *matchers) of(h hook) matchconditions.Matcher {
	var key strings.Builder
	for _, c := range h.conditions {
		key.WriteString(c.Name + "\x00" + c.Expression + "\x00")
	}
	policy := admissionregistrationv1.Fail
	if h.ignore {
		policy = admissionregistrationv1.Ignore
	}
	key.WriteString(string(policy))
	if found, ok := m.compiled.Load(key.String()); ok {
		return found.(matchconditions.Matcher)
	}
	m.once.Do(func() {
		m.compiler = celplugin.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	})
	var expressions []celplugin.ExpressionAccessor
	for _, c := range h.conditions {
		expressions = append(expressions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	compiled := m.compiler.CompileCondition(expressions, celplugin.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	matcher := matchconditions.NewMatcher(compiled, &policy, "webhook", "validate", h.name)
	m.compiled.Store(key.String(), matcher)
	return matcher
}

// askIfMatched calls the webhook if its match conditions are true. Otherwise it returns
// nil, which allows the write.
func (s *scope) askIfMatched(h hook, r review) (*admissionv1.AdmissionResponse, error) {
	if len(h.conditions) > 0 {
		result := s.cluster.matchers.of(h).Match(context.Background(), s.attributes(h, r), nil, nil)
		if result.Error != nil {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: s.resource.Group, Resource: s.resource.Plural}, s.name, result.Error)
		}
		if !result.Matches {
			return nil, nil
		}
	}
	return s.ask(h, r)
}

// attributes returns the variables of match conditions for a write.
func (s *scope) attributes(h hook, r review) *admission.VersionedAttributes {
	kind := schema.GroupVersionKind{Group: s.resource.Group, Version: h.version, Kind: s.resource.Kind.Kind}
	resource := schema.GroupVersionResource{Group: s.resource.Group, Version: s.version.name, Resource: s.resource.Plural}
	var object, old runtime.Object // interfaces that are nil, not typed nil pointers
	if r.object != nil {
		object = r.object
	}
	if r.old != nil {
		old = r.old
	}
	record := admission.NewAttributesRecord(object, old, kind, s.namespace, s.name, resource, s.subresource,
		admission.Operation(r.operation), nil, s.dryRun, userInfo(s.writer()))
	all := &admission.VersionedAttributes{Attributes: record, VersionedKind: kind}
	all.VersionedObject.Set(object)
	all.VersionedOldObject.Set(old)
	return all
}

func userInfo(u authenticationv1.UserInfo) user.Info {
	extra := map[string][]string{}
	for key, values := range u.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra}
}
