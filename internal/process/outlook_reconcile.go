package process

import (
	"context"
	"strings"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// reconcilers adds the reconcile handlers and the stored inventory of children.
func (o *Outlook) reconcilers(ctx context.Context, v *view) error {
	if v.Reconcile == nil {
		return nil
	}
	request := v.plainRequest(v.memory, v.body)
	for _, h := range v.Reconcile.Handlers {
		records, err := v.Config.Progress.Load(ctx, v.stored, []string{h.ID, inventoryID(h.ID)})
		if err = v.ignoreMalformed(err); err != nil {
			return err
		}
		f := Forecast{Handler: h}
		if r, ok := records[h.ID]; ok && !v.copied {
			f.Record = &r
		}
		switch missed := h.ObjectMiss(request); {
		case missed != handler.Miss{}:
			f.Phase, f.Miss, f.Why = Unmatched, missed, h.Explain(missed, request)
		case v.body.Deleting:
			f.Phase, f.Why = Unmatched, "the object is being deleted"
		case v.handedOver():
			f.Phase, f.Why = Blocked, "another operator owns the object"
		case v.pause != nil:
			f.Phase, f.Why = Blocked, "the object is paused"
		default:
			f.reconcile(v, time.Now())
		}
		o.Reconcile = append(o.Reconcile, f)
		if !v.copied {
			_, found := inventoryOf(records[inventoryID(h.ID)], v.body.UID)
			o.Children = append(o.Children, found.Entries...)
		}
	}
	return nil
}

// reconcile adds the phase of a reconcile handler that may be called. A process that has
// just started calls it in any case. A running process knows more than the object shows: the
// essence of the last call, and the changes of children. Without a record of an error, the
// phase is therefore only that the handler applies.
func (f *Forecast) reconcile(v *view, now time.Time) {
	switch r := f.Record; {
	case v.memory.listed:
		f.Phase = Due
	case r == nil:
		f.Phase = Matched
	case reconciledEssence(*r) != "" && reconciledEssence(*r) != progress.BaseID(v.essence(v.body)):
		f.Phase = Due
	case r.Failure:
		f.Phase = Failed
	case now.Before(r.Delayed):
		f.Phase, f.Until = Delayed, r.Delayed
	default:
		f.Phase = Due
	}
}

// reconcilePurpose is the purpose in the records of reconcile handlers.
const reconcilePurpose = "reconcile"

// reconciledFor returns the purpose in the record of a reconcile handler that was called
// for an essence. It shows another process whether the object has changed since.
func reconciledFor(essence string) string { return reconcilePurpose + " " + essence }

// reconciledEssence returns the id of the essence that the handler was called for. It is
// empty in the records of earlier versions.
func reconciledEssence(r storage.Record) string {
	_, essence, _ := strings.Cut(r.Purpose, " ")
	return essence
}
