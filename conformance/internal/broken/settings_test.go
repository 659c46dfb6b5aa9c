package broken

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// configures replaces Configure.
func configures(do func(s full, ctx context.Context, r ports.ConfigureRequest) error) func(full) full {
	return func(s full) full {
		return replaceErr(s, "Configure", func(ctx context.Context, r ports.ConfigureRequest) error {
			return do(s, ctx, r)
		})
	}
}

// settingsIn returns the settings of a queue that a store has.
func settingsIn(ctx context.Context, s full, queue string) (core.Settings, error) {
	queues, err := s.Queues(ctx)
	for _, q := range queues {
		if q.Name == queue {
			return q.Settings, err
		}
	}
	return core.Settings{}, errors.Join(err, storekit.UnknownQueue(queue))
}

// showsSettings changes the settings of the list of queues before it is returned.
func showsSettings(s full, change func(queue string, s core.Settings) core.Settings) full {
	return intercept(s, "Queues", func(ctx context.Context, call storekit.Call) error {
		queues, err := s.Queues(ctx)
		for i := range queues {
			queues[i].Settings = change(queues[i].Name, queues[i].Settings)
		}
		*call.Reply.(*[]ports.Queue) = queues
		return err
	})
}

// ignoresVersions takes each change, whatever its version is.
func ignoresVersions(s full) full {
	var mu sync.Mutex
	last := make(map[string]core.Settings)
	careless := replaceErr(s, "Configure", func(ctx context.Context, r ports.ConfigureRequest) error {
		if _, err := settingsIn(ctx, s, r.Queue); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		last[r.Queue] = r.Settings.Clone()
		return nil
	})
	return showsSettings(careless, func(queue string, _ core.Settings) core.Settings {
		mu.Lock()
		defer mu.Unlock()
		return last[queue].Clone()
	})
}

// refusesRepeats takes a repeated call for another one's change.
func refusesRepeats(s full, ctx context.Context, r ports.ConfigureRequest) error {
	present, err := settingsIn(ctx, s, r.Queue)
	if err == nil && present.Version == r.Settings.Version {
		return &ports.SettingsConflictError{Queue: r.Queue, Settings: present}
	}
	return s.Configure(ctx, r)
}

// takesAnyRepeat takes each change to the present version for a repeat.
func takesAnyRepeat(s full, ctx context.Context, r ports.ConfigureRequest) error {
	present, err := settingsIn(ctx, s, r.Queue)
	if err == nil && present.Version > 0 && present.Version == r.Settings.Version {
		return nil
	}
	return s.Configure(ctx, r)
}

func hidesConflictingSettings(s full, ctx context.Context, r ports.ConfigureRequest) error {
	err := s.Configure(ctx, r)
	if conflict, ok := errors.AsType[*ports.SettingsConflictError](err); ok {
		conflict.Settings.Set = nil
	}
	return err
}

func forgetsUnknownSettings(s full, ctx context.Context, r ports.ConfigureRequest) error {
	known := core.Settings{Version: r.Settings.Version, By: r.Settings.By, At: r.Settings.At}
	for _, e := range r.Settings.Set {
		if _, err := core.ParseSetting(e.Name, e.Value); err == nil || r.Validate() != nil {
			known.Set = append(known.Set, e)
		}
	}
	r.Settings = known
	return s.Configure(ctx, r)
}

func takesZeroForUnset(s full, ctx context.Context, r ports.ConfigureRequest) error {
	set := core.Settings{Version: r.Settings.Version, By: r.Settings.By, At: r.Settings.At}
	for _, e := range r.Settings.Set {
		if e.Value != "0" {
			set.Set = append(set.Set, e)
		}
	}
	r.Settings = set
	return s.Configure(ctx, r)
}

func configuresNoQueue(s full, ctx context.Context, r ports.ConfigureRequest) error {
	if err := s.Configure(ctx, r); !errors.Is(err, ports.ErrUnknownQueue) {
		return err
	}
	return nil
}

// keepsValidPart stores of invalid settings those that are valid.
func keepsValidPart(s full, ctx context.Context, r ports.ConfigureRequest) error {
	err := r.Validate()
	if err == nil {
		return s.Configure(ctx, r)
	}
	present, unknown := settingsIn(ctx, s, r.Queue)
	if unknown == nil {
		unknown = s.Configure(ctx, ports.ConfigureRequest{
			Queue:    r.Queue,
			Settings: core.Settings{Version: present.Version + 1},
		})
	}
	return errors.Join(err, unknown)
}

// remembersSettings shows the settings that a queue of this name had before it was forgotten.
func remembersSettings(s full) full {
	var mu sync.Mutex
	seen := make(map[string]core.Settings)
	return showsSettings(s, func(queue string, s core.Settings) core.Settings {
		mu.Lock()
		defer mu.Unlock()
		if s.Version == 0 {
			return seen[queue].Clone()
		}
		seen[queue] = s.Clone()
		return s
	})
}

// losesSettingsAtPauses shows no settings of a queue after a pause.
func losesSettingsAtPauses(s full) full {
	var mu sync.Mutex
	lost := make(map[string]bool)
	paused := replaceErr(s, "Pause", func(ctx context.Context, queue string) error {
		mu.Lock()
		defer mu.Unlock()
		lost[queue] = true
		return s.Pause(ctx, queue)
	})
	return showsSettings(paused, func(queue string, s core.Settings) core.Settings {
		mu.Lock()
		defer mu.Unlock()
		if lost[queue] {
			return core.Settings{}
		}
		return s
	})
}

// sharesSettings returns the slices that it keeps.
func sharesSettings(s full) full {
	var mu sync.Mutex
	kept := make(map[string]core.Settings)
	return showsSettings(s, func(queue string, s core.Settings) core.Settings {
		mu.Lock()
		defer mu.Unlock()
		if kept[queue].Version != s.Version {
			kept[queue] = s
		}
		return kept[queue]
	})
}

// mixesUpQueues shows the settings of the queue orders for each queue.
func mixesUpQueues(s full) full {
	return intercept(s, "Queues", func(ctx context.Context, call storekit.Call) error {
		queues, err := s.Queues(ctx)
		for i := range queues {
			queues[i].Settings = queues[0].Settings.Clone()
		}
		*call.Reply.(*[]ports.Queue) = queues
		return err
	})
}

func forgetsWhoSet(s full) full {
	return showsSettings(s, func(_ string, s core.Settings) core.Settings {
		for i := range s.Set {
			s.Set[i].By = ""
		}
		return s
	})
}

// forgetsWhoChanged keeps who has set each setting, but not who has made the last change.
func forgetsWhoChanged(s full) full {
	return showsSettings(s, func(_ string, s core.Settings) core.Settings {
		s.By, s.At = "", 0
		return s
	})
}

// hasTwoWinners is a backend whose handles compare versions with what they have read before.
func hasTwoWinners(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	store := withTransactions(clock)
	var mu sync.Mutex
	calls := 0
	s := replaceErr(store, "Configure", func(ctx context.Context, r ports.ConfigureRequest) error {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if err := store.Configure(ctx, r); calls%2 == 1 || !errors.Is(err, ports.ErrSettingsConflict) {
			return err
		}
		return nil
	})
	return func() ports.ShardStore { return s }
}

func brokenSettings() []brokenStore {
	return []brokenStore{
		{"has settings at first", "settings/are none at first", wrapped(func(s full) full {
			return showsSettings(s, func(string, core.Settings) core.Settings { return core.Settings{Version: 1} })
		})},
		{"forgets who has set a setting", "settings/are set, changed and unset", wrapped(forgetsWhoSet)},
		{"forgets who has unset a setting", "settings/are set, changed and unset", wrapped(forgetsWhoChanged)},
		{"takes 0 for unset", "settings/tell 0 from unset", wrapped(configures(takesZeroForUnset))},
		{
			"drops settings that it does not know",
			"settings/keep what a newer program has set",
			wrapped(configures(forgetsUnknownSettings)),
		},
		{"ignores the version of settings", "settings/refuse a version that does not follow", wrapped(ignoresVersions)},
		{
			"takes another change to a version for a repeat",
			"settings/refuse a version that does not follow",
			wrapped(configures(takesAnyRepeat)),
		},
		{
			"does not name the settings of a conflict",
			"settings/name the present ones in a conflict",
			wrapped(configures(hidesConflictingSettings)),
		},
		{"finds a conflict in a repeat", "settings/may be sent again", wrapped(configures(refusesRepeats))},
		{"lets two handles win", "settings/are won by one of two handles", hasTwoWinners},
		{
			"loses settings at a pause",
			"settings/stay when the queue is paused and declared again",
			wrapped(losesSettingsAtPauses),
		},
		{"mixes up the settings of queues", "settings/belong to their queue", wrapped(mixesUpQueues)},
		{"keeps the settings of a forgotten queue", "settings/end with their queue", wrapped(remembersSettings)},
		{
			"configures an unknown queue",
			"settings/of an unknown queue are refused",
			wrapped(configures(configuresNoQueue)),
		},
		{"stores a part of invalid settings", "settings/that are invalid are refused", wrapped(configures(keepsValidPart))},
		{"shares its settings with callers", "settings/share no memory with the caller", wrapped(sharesSettings)},
		{
			"takes 0 of a worked case for unset",
			"settings/change as the worked cases do",
			wrapped(configures(takesZeroForUnset)),
		},
	}
}
