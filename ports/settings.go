package ports

import (
	"fmt"
	"strings"

	"github.com/skeinq/skein/core"
)

// ConfigureRequest replaces the settings of a queue.
type ConfigureRequest struct {
	Queue string
	// Settings are all settings of the queue after the call, with their new Version:
	// core.Settings.Change makes them from those that [Registry.Queues] has returned. The time of a
	// setting is the caller's, who takes it from the Now of a reply of the store.
	Settings core.Settings
}

// Validate returns [ErrInvalidRequest] for settings that core.Settings.Validate refuses. It does not
// check the name of the queue, or the values of settings: the caller may be an older program, which
// keeps what a newer one has set.
func (r *ConfigureRequest) Validate() error {
	if err := r.Settings.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidRequest, err)
	}
	return nil
}

// SettingsConflictError is an [ErrSettingsConflict] with the present settings. Configure returns it.
// [errors.Is] reports that it is [ErrSettingsConflict].
type SettingsConflictError struct {
	Queue string
	// Settings are the present settings of the queue.
	Settings core.Settings
}

// Error implements error. The text names who made the last change, and when.
func (e *SettingsConflictError) Error() string {
	return fmt.Sprintf("%v: those of queue %q have version %d, and %s; look at the queue again, then repeat the change",
		ErrSettingsConflict, e.Queue, e.Settings.Version, lastChange(e.Settings))
}

// Unwrap returns [ErrSettingsConflict].
func (e *SettingsConflictError) Unwrap() error { return ErrSettingsConflict }

// lastChange describes the last change of settings, as a clause.
func lastChange(s core.Settings) string {
	if s.Broken {
		return "can't be read"
	}
	if s.Version == 0 {
		return "none was ever set"
	}

	by := s.By
	if by == "" {
		by = "somebody without a name"
	}
	at := s.At.Time().Format("2006-01-02 15:04:05 UTC")

	var changed []string
	for _, e := range s.Set {
		if e.At == s.At && e.By == s.By {
			changed = append(changed, fmt.Sprintf("%s to %q", e.Name, e.Value))
		}
	}
	if len(changed) == 0 {
		return fmt.Sprintf("%s changed them at %s", by, at)
	}
	return fmt.Sprintf("%s changed them at %s: %s", by, at, strings.Join(changed, ", "))
}
