// Package p has what all pages take for granted.
package p

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitzero"`
}

type DatabaseSpec struct {
	Size    int      `json:"size"`
	Version string   `json:"version,omitempty"`
	Users   []string `json:"users,omitempty"`
}

type DatabaseStatus struct {
	Phase string `json:"phase,omitempty"`
	Host  string `json:"host,omitempty"`
	Ready int    `json:"ready,omitempty"`
}

var (
	ctx context.Context
	op  = gopf.New()
	dbs = gopf.For[*Database](op, "example.com/v1/databases")
	c   *gopf.Change[*Database]
)

func create(ctx context.Context, c *gopf.Change[*Database]) error { return nil }
func resize(ctx context.Context, c *gopf.Change[*Database]) error { return nil }
func update(ctx context.Context, c *gopf.Change[*Database]) error { return nil }
func drop(ctx context.Context, c *gopf.Change[*Database]) error   { return nil }
func resume(ctx context.Context, c *gopf.Change[*Database]) error { return nil }
