package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"

	"gopf.dev/gopf/bench/widget"
)

// Limited is a user who may list, watch and change widgets only in the namespaces of
// Settle, and may list namespaces.
const Limited = "limited"

// Namespace returns the name of a namespace by its number.
func Namespace(number int) string { return fmt.Sprintf("team-%05d", number) }

// Settle writes namespaces into the database, each with one handled object. The last one
// also has a new object.
func (c *Cluster) Settle(ctx context.Context, namespaces int) error {
	err := parallel(namespaces, func(i int) error {
		name := Namespace(i)
		raw := fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"uid":%q,"creationTimestamp":"2026-01-01T00:00:00Z",`+
			`"labels":{"kubernetes.io/metadata.name":%q}},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`, name, uid("namespaces", i), name)
		if _, err := c.etcd.Put(ctx, "/registry/namespaces/"+name, raw); err != nil {
			return err
		}
		return c.place(ctx, c.mould.Handled, name, i)
	})
	if err != nil {
		return err
	}
	return c.place(ctx, c.mould.Fresh, Namespace(namespaces-1), 9_999_999)
}

// place writes a widget into a namespace of the database.
func (c *Cluster) place(ctx context.Context, mould []byte, namespace string, number int) error {
	raw, err := c.mould.cast(mould, "widgets", number)
	if err != nil {
		return err
	}
	text := strings.Replace(string(raw), `"namespace":"default"`, fmt.Sprintf(`"namespace":%q`, namespace), 1)
	_, err = c.etcd.Put(ctx, "/registry/"+widget.GroupVersion.Group+"/widgets/"+namespace+"/"+Name(number), text)
	return err
}

// Limit gives [Limited] its permissions.
func (c *Cluster) Limit(ctx context.Context, namespaces int) error {
	const group = "rbac.authorization.k8s.io"
	role := func(name, groups, resources string) any {
		rule := map[string]any{"apiGroups": strings.Split(groups, ","), "resources": strings.Split(resources, ","), "verbs": []string{"*"}}
		return map[string]any{"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name}, "rules": []any{rule}}
	}
	binding := func(kind, to string) any {
		return map[string]any{"apiVersion": group + "/v1", "kind": kind, "metadata": map[string]any{"name": "limited"},
			"roleRef": map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": to}, "subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": Limited}}}
	}
	create := func(kindName, plural, namespace string, object any) error {
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		info := kind.Info{Group: group, Version: "v1", Plural: plural, Kind: kindName, Namespaced: namespace != ""}
		_, err = c.api.Create(ctx, kube.Target{Info: info, Namespace: namespace}, raw)
		return err
	}
	for _, step := range []func() error{
		func() error {
			return create("ClusterRole", "clusterroles", "", role("limited-cluster", ",apiextensions.k8s.io", "namespaces,customresourcedefinitions,events"))
		},
		func() error {
			return create("ClusterRole", "clusterroles", "", role("limited-widgets", widget.GroupVersion.Group, "*"))
		},
		func() error {
			return create("ClusterRoleBinding", "clusterrolebindings", "", binding("ClusterRoleBinding", "limited-cluster"))
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return parallel(namespaces, func(i int) error {
		return create("RoleBinding", "rolebindings", Namespace(i), binding("RoleBinding", "limited-widgets"))
	})
}
