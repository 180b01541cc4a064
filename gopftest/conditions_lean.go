//go:build gopf_lean

package gopftest

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// matchers has no state, because this build evaluates no match conditions.
type matchers struct{}

// askIfMatched calls the webhook. A webhook with match conditions fails instead, under its
// failure policy: calling it for writes that it does not expect would be worse.
func (s *scope) askIfMatched(h hook, r review) (*admissionv1.AdmissionResponse, error) {
	switch {
	case len(h.conditions) == 0:
		return s.ask(h, r)
	case h.ignore:
		return nil, nil
	}
	return nil, apierrors.NewInternalError(fmt.Errorf(
		"webhook %q has match conditions, which the in-memory server does not evaluate; use the real control plane", h.name))
}
