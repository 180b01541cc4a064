package gopf

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"gopf.dev/gopf/internal/activity"
	"gopf.dev/gopf/internal/engine"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/logs"
)

// live runs the startup handlers, serves the cluster, and runs the cleanup handlers.
// Cleanup handlers run even if startup fails.
func (op *Operator) live(ctx context.Context, run *runOptions) error {
	if err := run.prepare(); err != nil {
		return err
	}
	op.Settings.Peering.Clusterwide = run.clusterwide() // startup handlers may override it
	run.log.Debug("The operator is starting.")
	clean := sync.OnceValue(func() error {
		_, err := op.perform(context.WithoutCancel(ctx), cleanup, run.log)
		return err
	})
	_, err := op.perform(ctx, startup, run.log)
	if err == nil {
		err = op.serve(ctx, run, func() { _ = clean() }) // cleanup runs while there are credentials
	}
	if ctx.Err() != nil && errors.As(err, new(*activity.UnfinishedError)) {
		err = nil // stopped during startup or cleanup
	}
	return errors.Join(err, clean())
}

// serve serves the cluster with the settings after startup. It calls stopped when no
// handler is running and none will be called.
func (op *Operator) serve(ctx context.Context, run *runOptions, stopped func()) error {
	if err := op.checkStorages(); err != nil {
		return err
	}
	op.adviseOnStorages(run.log)
	op.hooks.on.Store(op.Settings.Execution.ReportLostEdits)
	config, err := run.engineConfig(op)
	if err != nil {
		return err
	}
	config.Stopped = stopped
	for _, kind := range []activityKind{logins, probing, cleanup} {
		for _, h := range op.activities[kind] {
			config.Activities = append(config.Activities, h.id)
		}
	}
	config.Counting = func(count execute.Observer) { op.counting.Store(&count) }
	config.Running = func(h engine.Handle) {
		op.running.Store(&h)
		op.pauser.begin(h)
	}
	config.ForHandlers = func(h engine.Handle) handler.API { return op.newCluster(h, run.log) }
	return explainLogin(engine.Run(ctx, config))
}

// perform calls the handlers of an activity until all are finished.
func (op *Operator) perform(ctx context.Context, kind activityKind, log *slog.Logger) (results map[string]any, err error) {
	log = log.With(logs.Logger, "gopf.activities."+string(kind))
	config := activity.Config{Name: string(kind), DefaultBackoff: op.Settings.Execution.DefaultBackoff, Log: log}
	if count := op.counting.Load(); count != nil {
		config.Observe = *count
	}
	for _, h := range op.activities[kind] {
		config.Handlers = append(config.Handlers, activity.Handler{
			ID: h.id, Where: h.where, Limits: h.limits,
			Call: func(ctx context.Context, c activity.Call) (any, error) {
				a := &Activity{Settings: &op.Settings, Log: log, own: c.Log, Retry: c.Retry, Started: c.Started}
				if running := op.running.Load(); running != nil && kind != logins { // requests of login handlers would wait for the login itself
					api := op.newCluster(*running, log).For("", nil, nil)
					a.API = &api
				}
				return h.call(ctx, a)
			},
		})
	}
	return activity.Run(ctx, config)
}
