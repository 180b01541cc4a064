package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
)

// label restores the label of a child whose content is never changed. Without the label, the
// watch does not show the child, so its deletion would not be noticed. Other children get
// their label with the next apply.
func (x *run) label(ctx context.Context, w *handler.Wanted, child *childwatch.Child, known *children.Entry) {
	if pause := x.Fights.Repair(w.Key, time.Now()); pause > 0 {
		x.fight(ctx, w, pause)
		x.keep(known)
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": child.UID, "labels": map[string]any{childwatch.Label: x.Name},
	}})
	if err != nil {
		x.fail("ApplyFailed", err)
		return
	}
	leave, err := x.turn(ctx, w, child)
	if err != nil {
		x.fail("ApplyFailed", fmt.Errorf("restore the label of %s: %w", w.Key, err))
		x.keep(known)
		return
	}
	defer leave()
	x.Store.Sending(w.Key)
	body, err := x.Objects.API.Patch(ctx, kube.Target{Info: w.Info, Namespace: w.Namespace, Name: w.Name}, types.MergePatchType, patch, kube.FieldManager(x.Name))
	if err == nil {
		x.result.Written++
		child, err = x.Store.Read(w.Info, body)
	}
	if err != nil {
		x.result.Changed = x.Store.Sent(w.Key, nil) || x.result.Changed
		x.fail("ApplyFailed", fmt.Errorf("restore the label of %s: %w", w.Key, err))
		x.keep(known)
		return
	}
	x.result.Changed = x.Store.Sent(w.Key, child) || x.result.Changed
	x.conclude(ctx, w, child, known)
}
