package gopftest

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// servePatch serves all types of patches, including server-side apply.
func (x *exchange) servePatch(s *scope, view *view) error {
	media, _, _ := strings.Cut(x.r.Header.Get("Content-Type"), ";")
	if media != string(types.ApplyYAMLPatchType) {
		return x.answer(http.StatusOK, view)(s.patch(types.PatchType(media), x.body))
	}
	options := &metav1.PatchOptions{}
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(x.r.URL.Query(), metav1.SchemeGroupVersion, options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	s.manager = options.FieldManager // apply requires an explicit field manager
	e, created, err := s.apply(x.body, options.Force)
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return x.answer(code, view)(e, err)
}

// serveDelete deletes an object. The response contains the object if finalizers keep it.
func (x *exchange) serveDelete(s *scope, view *view) error {
	options, err := x.deleteOptions()
	if err != nil {
		return err
	}
	s.dryRun = s.dryRun || len(options.DryRun) > 0
	marked, done, err := s.delete(options)
	switch {
	case err != nil:
		return err
	case done != nil:
		x.write(http.StatusOK, encode(done))
	default:
		return x.answer(http.StatusOK, view)(marked, nil)
	}
	return nil
}

func (x *exchange) serveDeleteCollection(s *scope, view *view) error {
	options, err := x.deleteOptions()
	if err != nil {
		return err
	}
	chosen, err := s.listOptions(x.r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.list(x.r.Context(), chosen)
	if err != nil {
		return err
	}
	for _, e := range page.items {
		one := *s
		one.dryRun = s.dryRun || len(options.DryRun) > 0
		one.namespace, one.name = e.key.namespace, e.key.name
		if _, _, err := one.delete(options); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := view.check(true); err != nil {
		return err
	}
	x.write(http.StatusOK, view.list(page))
	return nil
}

// deleteOptions reads the options from the body or from the query.
func (x *exchange) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(x.body) > 0 {
		if err := utiljson.Unmarshal(x.body, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return options, nil
	}
	err := metainternalversionscheme.ParameterCodec.DecodeParameters(x.r.URL.Query(), metav1.SchemeGroupVersion, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}
