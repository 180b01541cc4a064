// Package docs_test is the code of docs/testing.md: it is compiled and run.
package docs_test

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
)

const databases = "docs.gopf.dev/v1/databases"

type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size int `json:"size"`
	} `json:"spec"`
	Status struct {
		Phase   string `json:"phase,omitempty"`
		Backups int    `json:"backups,omitempty"`
	} `json:"status,omitzero"`
}

func newOperator() *gopf.Operator {
	op := gopf.New()
	dbs := gopf.For[*Database](op, databases)
	dbs.OnCreate("create", create)
	dbs.Field("spec.size").OnUpdate("resize", resize)
	dbs.OnDelete("drop", drop)
	dbs.Timer("backup", 6*time.Hour, backup, gopf.InitialDelay(6*time.Hour))
	return op
}

func create(_ context.Context, c *gopf.Change[*Database]) error {
	c.Patch.MergeStatus(map[string]any{"phase": "Ready"})
	c.Event(gopf.Normal, "Created", "the database is ready")
	c.SetResult(map[string]any{"host": c.Object.Name + ".example.com"})
	return nil
}

func resize(_ context.Context, c *gopf.Change[*Database]) error {
	if c.Object.Spec.Size < c.Old.Spec.Size {
		return gopf.Permanent(errors.New("a database cannot shrink"))
	}
	c.Log.Info("Resized.", "size", c.Object.Spec.Size)
	return nil
}

func drop(context.Context, *gopf.Change[*Database]) error { return nil }

func backup(_ context.Context, t *gopf.Tick[*Database]) error {
	t.Patch.Edit(func(db *Database) { db.Status.Backups++ })
	return nil
}
