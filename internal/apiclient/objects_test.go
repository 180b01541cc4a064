package apiclient

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// fake is an API with functions as responses. A nil function must not be called.
type fake struct {
	API
	discover func(groups []string) ([]kind.Info, error)
	create   func(body string) (*object.Body, error)
	get      func(kube.Target) (*object.Body, error)
	patch    func(kube.Target) (*object.Body, error)
	page     func(page string, limit int) ([]*object.Body, string, error)
}

func (f fake) Discover(_ context.Context, groups ...string) (kube.Discovery, error) {
	found, err := f.discover(groups)
	return kube.Discovery{Resources: found}, err
}

func (f fake) Create(_ context.Context, _ kube.Target, body []byte, _ ...kube.Param) (*object.Body, error) {
	return f.create(string(body))
}

func (f fake) Patch(_ context.Context, t kube.Target, _ types.PatchType, _ []byte, _ ...kube.Param) (*object.Body, error) {
	return f.patch(t)
}

func (f fake) Page(_ context.Context, _ kind.Info, _ string, o kube.ListOptions, page string) ([]*object.Body, string, error) {
	return f.page(page, o.Limit)
}

func (f fake) Get(_ context.Context, t kube.Target) (*object.Body, error) { return f.get(t) }

var (
	pods     = kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Singular: "pod", Namespaced: true, Preferred: true}
	widgets  = kind.Info{Group: "a.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Preferred: true}
	others   = kind.Info{Group: "b.example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true, Preferred: true}
	podsOf   = kube.Target{Info: pods, Namespace: "ns"}
	errWorld = errors.New("the world has ended")
)

func known(infos ...kind.Info) func() []kind.Info { return func() []kind.Info { return infos } }

func TestUnknownResourcesAreDiscovered(t *testing.T) {
	var asked []string
	c := &Objects{Known: known(pods), API: fake{discover: func(groups []string) ([]kind.Info, error) {
		asked = append(asked, strings.Join(groups, "+"))
		return []kind.Info{widgets}, nil
	}}}
	for _, find := range []func() (kind.Info, error){
		func() (kind.Info, error) { return c.Select(t.Context(), kind.Named("pods")) },
		func() (kind.Info, error) {
			return c.ByKind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		},
	} {
		if i, err := find(); err != nil || i.GVR() != pods.GVR() {
			t.Errorf("got %v, %v", i, err)
		}
	}
	if len(asked) != 0 {
		t.Errorf("discovered %q", asked)
	}
	for _, find := range []func() (kind.Info, error){
		func() (kind.Info, error) {
			return c.Select(t.Context(), kind.Named("widgets").InGroup("a.example.com"))
		},
		func() (kind.Info, error) { return c.Select(t.Context(), kind.Named("widgets")) },
		func() (kind.Info, error) {
			return c.ByKind(t.Context(), schema.GroupVersionKind{Group: "a.example.com", Version: "v1", Kind: "Widget"})
		},
	} {
		if i, err := find(); err != nil || i.GVR() != widgets.GVR() {
			t.Errorf("got %v, %v", i, err)
		}
	}
	if got := strings.Join(asked, " "); got != "a.example.com  a.example.com" {
		t.Errorf("discovered %q", got)
	}
}

func TestResourcesThatCannotBeFound(t *testing.T) {
	c := &Objects{Known: known(widgets, others)}
	_, err := c.Select(t.Context(), kind.Named("widgets"))
	if ambiguous, ok := errors.AsType[*AmbiguousError](err); !ok || len(ambiguous.Found) != 2 {
		t.Errorf("got %v", err)
	}
	c.API = fake{discover: func([]string) ([]kind.Info, error) { return nil, errWorld }}
	if _, err := c.Select(t.Context(), kind.Named("gadgets")); !errors.Is(err, errWorld) {
		t.Errorf("got %v", err)
	}
	_, err = c.Offline().Select(t.Context(), kind.Named("gadgets"))
	if _, ok := errors.AsType[*UnknownError](err); !ok {
		t.Errorf("offline: got %v", err)
	}
	_, err = c.Offline().ByKind(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	if _, ok := errors.AsType[*UnknownError](err); !ok {
		t.Errorf("offline: got %v", err)
	}
}

func TestGeneratedNamesInUseAreReplaced(t *testing.T) {
	names := map[string]bool{}
	c := &Objects{Known: known(pods), API: fake{create: func(body string) (*object.Body, error) {
		b, err := object.Parse([]byte(body))
		if err != nil {
			return nil, err
		}
		names[b.Name] = true
		if len(names) < 3 {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, b.Name)
		}
		return b, nil
	}}}
	fields := map[string]any{"metadata": map[string]any{"generateName": strings.Repeat("x", 70)}}
	b, err := c.Create(t.Context(), podsOf, fields)
	if err != nil || len(names) != 3 || len(b.Name) != 63 {
		t.Errorf("got %v, %v after %v", b, err, names)
	}
	if text(fields, "name") != "" {
		t.Error("the caller's fields were changed")
	}
}

func TestLostCreationsThatCannotBeConfirmed(t *testing.T) {
	lostAnswer := &kube.UnknownOutcomeError{Err: errWorld}
	for name, test := range map[string]struct {
		fields map[string]any
		get    func(kube.Target) (*object.Body, error)
		sent   int
	}{
		"no name": {map[string]any{}, nil, 1},
		"no response to the read": {map[string]any{"metadata": map[string]any{"name": "a"}},
			func(kube.Target) (*object.Body, error) { return nil, errWorld }, 1},
		"lost repeatedly": {map[string]any{"metadata": map[string]any{"name": "a"}},
			func(kube.Target) (*object.Body, error) {
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")
			}, sends},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			c := &Objects{Known: known(pods), API: fake{get: test.get, create: func(string) (*object.Body, error) {
				sent++
				return nil, lostAnswer
			}}}
			_, err := c.Create(t.Context(), podsOf, test.fields)
			if !errors.As(err, new(*kube.UnknownOutcomeError)) || sent != test.sent {
				t.Errorf("got %v after %d", err, sent)
			}
		})
	}
}

func TestAnAppliedCreationIsOursEvenIfTheServerChangedIt(t *testing.T) {
	c := &Objects{Known: known(pods), API: fake{
		create: func(string) (*object.Body, error) { return nil, &kube.UnknownOutcomeError{Code: 201, Err: errWorld} },
		get: func(kube.Target) (*object.Body, error) {
			return object.Parse([]byte(`{"metadata":{"name":"a","uid":"1"},"spec":{"memory":"1Gi"}}`))
		},
	}}
	b, err := c.Create(t.Context(), podsOf, map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"memory": "1024Mi"}})
	if err != nil || b.UID != "1" {
		t.Errorf("got %v, %v", b, err)
	}
}
