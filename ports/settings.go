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

// Error implements error. The text names the newest of the present settings, and who set them.
func (e *SettingsConflictError) Error() string {
	return fmt.Sprintf("%v: those of queue %q have version %d, and %s; look at the queue again, then repeat the change",
		ErrSettingsConflict, e.Queue, e.Settings.Version, newestSettings(e.Settings))
}

// Unwrap returns [ErrSettingsConflict].
func (e *SettingsConflictError) Unwrap() error { return ErrSettingsConflict }

// newestSettings describes the settings that were set last, as a clause.
func newestSettings(s core.Settings) string {
	if s.Broken {
		return "can't be read"
	}

	var newest []core.Setting
	for _, e := range s.Set {
		switch {
		case len(newest) == 0 || e.At > newest[0].At:
			newest = []core.Setting{e}
		case e.At == newest[0].At:
			newest = append(newest, e)
		}
	}
	if len(newest) == 0 {
		return "none is set"
	}

	var texts []string
	for _, e := range newest {
		by := e.By
		if by == "" {
			by = "somebody without a name"
		}
		texts = append(texts, fmt.Sprintf("%s was set to %q by %s at %s",
			e.Name, e.Value, by, e.At.Time().Format("2006-01-02 15:04:05 UTC")))
	}
	return strings.Join(texts, ", ")
}
