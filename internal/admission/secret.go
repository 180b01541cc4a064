package admission

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// SecretStore is a [webhook.KeyStore] that stores keys in a Secret.
type SecretStore struct {
	api             API
	namespace, name string
}

// NewSecretStore returns a store in the Secret. The first call of [SecretStore.Save]
// creates it.
func NewSecretStore(api API, namespace, name string) *SecretStore {
	return &SecretStore{api, namespace, name}
}

// secret returns the endpoint of a Secret. Without a name, it is that of the namespace.
func secret(namespace, name string) kube.Target {
	return kube.Target{
		Info:      kind.Info{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true},
		Namespace: namespace, Name: name,
	}
}

// Load returns the data and the version of the Secret. The version is empty if the Secret
// does not exist.
func (s *SecretStore) Load(ctx context.Context) (map[string][]byte, string, error) {
	b, err := s.api.Get(ctx, secret(s.namespace, s.name))
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	// Not the type of k8s.io/api/core/v1: compiling that package takes longer than compiling
	// most other dependencies, and many operators do not need it.
	var read struct {
		Data map[string][]byte `json:"data"`
	}
	if err := b.Decode(&read); err != nil {
		return nil, "", fmt.Errorf("read the Secret %s: %w", b.Identity, err)
	}
	return read.Data, b.ResourceVersion, nil
}

// Save replaces the data of the Secret. version is the one from [SecretStore.Load]. The
// error is [webhook.ErrConflict] if the Secret has another version.
func (s *SecretStore) Save(ctx context.Context, items map[string][]byte, version string) error {
	err := s.save(ctx, items, version)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || version != "" && apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", webhook.ErrConflict, err)
	}
	return err
}

func (s *SecretStore) save(ctx context.Context, items map[string][]byte, version string) error {
	var content any = map[string]any{"metadata": map[string]any{"name": s.name}, "type": "Opaque", "data": items}
	if version != "" {
		content = []patch.Op{
			{Op: "replace", Path: "/metadata/resourceVersion", Value: version}, // a stale version causes a conflict
			{Op: "add", Path: "/data", Value: items},
		}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if version == "" {
		_, err = s.api.Create(ctx, secret(s.namespace, ""), raw)
	} else {
		_, err = s.api.Patch(ctx, secret(s.namespace, s.name), types.JSONPatchType, raw)
	}
	return err
}
