package gopf

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"gopf.dev/gopf/internal/guard"
	"gopf.dev/gopf/internal/page"
	"gopf.dev/gopf/storage"
	"gopf.dev/gopf/webhook"
)

// DefaultSettings returns the settings of a new operator.
func DefaultSettings() Settings {
	s := Settings{
		Persistence: PersistenceSettings{
			Finalizer: kopfFinalizer,
			Progress:  storage.DefaultProgress(),
			Base:      storage.DefaultBase(),
		},
		Execution: ExecutionSettings{DefaultBackoff: 60 * time.Second, Lifecycle: ASAP},
		Posting: PostingSettings{
			Enabled: true, Level: slog.LevelInfo, ReportingComponent: "kopf", ReportingInstance: "dev", EventNamePrefix: "kopf-event-",
		},
		Queueing: QueueingSettings{
			ExitTimeout: 2 * time.Second,
			ErrorDelays: seconds(1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610),
		},
		Watching: WatchingSettings{
			InactivityTimeout: 70 * time.Second,
			ReconnectBackoff:  100 * time.Millisecond,
		},
		Networking: NetworkingSettings{
			RequestTimeout: 30 * time.Second,
			ConnectTimeout: 10 * time.Second,
			ErrorDelays:    seconds(1, 1, 2, 3, 5, 8, 13, 21),
			TrustEnv:       true,
		},
		Peering: PeeringSettings{Name: "default", Lifetime: 60 * time.Second},
		Election: ElectionSettings{
			Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		},
	}
	s.Background.CancellationPolling = 60 * time.Second
	s.Process.UltimateExitingTimeout = 25 * time.Second
	return s
}

// check returns the first invalid setting. Settings may have been built without the
// defaults.
func (s Settings) check() error {
	switch {
	case s.Persistence.Progress == nil, s.Persistence.Base == nil:
		return errors.New("invalid settings: Persistence.Progress and Persistence.Base must be set; start with gopf.DefaultSettings()")
	case s.Persistence.Finalizer == "":
		return errors.New("invalid settings: Persistence.Finalizer is empty; start with gopf.DefaultSettings()")
	case slices.Contains(s.Persistence.FormerFinalizers, ""):
		return errors.New("invalid settings: Persistence.FormerFinalizers has an empty name; remove it")
	case len(s.Persistence.SecretKey) > 0 && len(s.Persistence.SecretKey) < 16:
		return fmt.Errorf("invalid settings: Persistence.SecretKey has %d bytes; use at least 16", len(s.Persistence.SecretKey))
	case s.Execution.Lifecycle == nil:
		return errors.New("invalid settings: Execution.Lifecycle is nil; start with gopf.DefaultSettings()")
	case s.Execution.MaxWorkers < 0, s.Queueing.WorkerLimit < 0:
		return errors.New("invalid settings: Execution.MaxWorkers and Queueing.WorkerLimit must not be negative; use 0 for no limit")
	case s.Networking.RetryForever && len(s.Networking.ErrorDelays) == 0:
		return errors.New("invalid settings: Networking.RetryForever needs delays; set Networking.ErrorDelays")
	case !s.Peering.Standalone && s.Peering.Name == "":
		return errors.New("invalid settings: Peering.Name is empty; set it, or set Peering.Standalone")
	case !s.Peering.Standalone && s.Peering.Lifetime < time.Second:
		return fmt.Errorf("invalid settings: Peering.Lifetime is %s; use at least 1s", s.Peering.Lifetime)
	case s.Peering.Standalone && s.Peering.Mandatory:
		return errors.New("invalid settings: Peering.Mandatory and Peering.Standalone are both set; use only one of them")
	}
	if err := s.Admission.check(); err != nil {
		return err
	}
	if s.Insight.Address != "" {
		if err := page.CheckAddress(s.Insight.Address, s.Insight.Secure); err != nil {
			return fmt.Errorf("invalid settings: Insight.Address: %w", err)
		}
	}
	if err := guard.CheckFiles(s.Endpoints.CertFile, s.Endpoints.KeyFile); err != nil {
		return fmt.Errorf("invalid settings: Endpoints: %w", err)
	}
	return s.Election.check()
}

func (s AdmissionSettings) check() error {
	if v, ok := s.Server.(webhook.Validator); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("invalid Settings.Admission.Server: %w", err)
		}
	}
	return nil
}

func (s ElectionSettings) check() error {
	switch {
	case !s.Enabled:
	case s.RetryPeriod <= 0, s.RenewDeadline < 2*s.RetryPeriod, s.Duration <= s.RenewDeadline, s.Duration < time.Second:
		return fmt.Errorf("invalid settings: Election requires 0 < 2 × RetryPeriod (%s) <= RenewDeadline (%s) < Duration (%s), and a Duration of at least 1s; correct these times",
			s.RetryPeriod, s.RenewDeadline, s.Duration)
	}
	return nil
}

// backoffs returns the delays between the attempts of a request.
func (s NetworkingSettings) backoffs() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for _, d := range s.ErrorDelays {
			if !yield(d) {
				return
			}
		}
		for n := len(s.ErrorDelays); s.RetryForever && n > 0 && yield(s.ErrorDelays[n-1]); {
		}
	}
}

func seconds(ns ...int) []time.Duration {
	ds := make([]time.Duration, len(ns))
	for i, n := range ns {
		ds[i] = time.Duration(n) * time.Second
	}
	return ds
}
