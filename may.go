package gopf

import (
	"regexp"

	"gopf.dev/gopf/internal/describe"
	"gopf.dev/gopf/kind"
)

// TypeOption is an option of [RegisterType]: [May].
type TypeOption func(*typeSpec)

type typeSpec struct{ verbs []string }

// May declares requests that handlers send through a [client.Client], by the verbs of RBAC.
// The command 'gopf manifests' grants them to the operator:
//
//	gopf.RegisterType[*corev1.Secret](op, "v1/secrets", gopf.May("get", "create"))
//
// A subresource is declared by its own name, as in RBAC. Its type does not matter:
//
//	gopf.RegisterType[gopf.Unstructured](op, "apps/v1/deployments/scale", gopf.May("patch"))
//
// [client.Client.Apply] needs "patch", and "create" for objects that do not exist. May
// neither grants nor denies anything by itself: requests that are not declared are sent as
// well. 'gopf permissions --learn' prints the declarations that are missing. The served
// resources and the kinds in [Owns] need no declaration. A verb that is empty or "*" is a
// declaration error.
func May(verbs ...string) TypeOption {
	return func(s *typeSpec) { s.verbs = append(s.verbs, verbs...) }
}

var verbs = regexp.MustCompile(`^[a-z]+$`)

// declareUse records the options of RegisterType. An empty subresource means the resource.
func (op *Operator) declareUse(of kind.Selector, subresource string, opts []TypeOption) {
	var spec typeSpec
	for _, o := range opts {
		o(&spec)
	}
	for _, verb := range spec.verbs {
		if !verbs.MatchString(verb) {
			op.problem("May(%q): this is not a verb; use get, list, watch, create, update, patch or delete", verb)
			return
		}
	}
	if len(spec.verbs) > 0 {
		op.uses = append(op.uses, describe.Use{Resource: op.describeResource(of), Subresource: subresource, Verbs: spec.verbs, Where: caller()})
	}
}
