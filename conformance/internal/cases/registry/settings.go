package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/vectors"
	"github.com/skeinq/skein/ports"
)

const (
	ruleConfigure    = "Configure replaces the settings of a queue"
	ruleConflict     = "Configure: the version that the store has must be the Version of the new settings less one"
	ruleSettingsStay = "Configure: the store keeps settings when the queue is paused, resumed or declared again, " +
		"and when its merge rule changes"
)

func settingsCases() []env.Case {
	return []env.Case{
		{
			Name:  "are none at first",
			Rule:  "Configure: 0 is the version of a queue that was never configured",
			Check: settingsNone,
		},
		{Name: "are set, changed and unset", Rule: ruleConfigure, Check: settingsChange},
		{Name: "tell 0 from unset", Rule: "RULES 11: 0 is a value, and not unset", Check: settingsZero},
		{
			Name:  "keep what a newer program has set",
			Rule:  "Configure: the store keeps settings whose names or values it does not know",
			Check: settingsUnknown,
		},
		{Name: "keep texts as they are", Rule: ruleConfigure, Check: settingsTexts},
		{Name: "refuse a version that does not follow", Rule: ruleConflict, Check: settingsConflict},
		{
			Name:  "name the present ones in a conflict",
			Rule:  "Configure: a *SettingsConflictError with the present settings",
			Check: settingsConflictNames,
		},
		{
			Name: "may be sent again",
			Rule: "Configure: if the store has settings that are equal to the new ones, " +
				"the call is a repeat and changes nothing",
			Check: settingsRepeat,
		},
		{
			Name:  "are won by one of two handles",
			Rule:  "Configure: of several calls with the same Version and other content exactly one succeeds",
			Check: settingsRace,
		},
		{Name: "stay when the queue is paused and declared again", Rule: ruleSettingsStay, Check: settingsStay},
		{Name: "belong to their queue", Rule: ruleConfigure, Check: settingsOfQueues},
		{Name: "end with their queue", Rule: "Configure: Forget removes them", Check: settingsForgotten},
		{Name: "of an unknown queue are refused", Rule: "Configure: ErrUnknownQueue", Check: settingsUndeclared},
		{
			Name:  "that are invalid are refused",
			Rule:  "ConfigureRequest.Validate: ErrInvalidRequest for settings that core.Settings.Validate refuses",
			Check: settingsInvalid,
		},
		{
			Name: "share no memory with the caller",
			Rule: "package ports: slices of a request stay the caller's, " +
				"and slices of a reply belong to the caller",
			Check: settingsSlices,
		},
		{Name: "change as the worked cases do", Rule: "RULES 11", Check: settingsVectors},
	}
}

// settingsOf returns settings of a version, from names and values in turn. All were set by ann at
// the beginning, who has made the last change too.
func settingsOf(version int64, namesAndValues ...string) core.Settings {
	s := core.Settings{Version: version, By: "ann", At: env.Start}
	for pair := range slices.Chunk(namesAndValues, 2) {
		s.Set = append(s.Set, core.Setting{Name: pair[0], Value: pair[1], By: "ann", At: env.Start})
	}
	return s
}

// configure replaces the settings of the queue orders.
func configure(e *env.Env, s core.Settings) {
	e.TB.Helper()
	e.Must(e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: env.Orders, Settings: s}), "Configure")
}

// haveSettings checks the settings of a queue, in the list of queues and in its statistics.
func haveSettings(e *env.Env, queue string, want core.Settings) {
	e.TB.Helper()
	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	at := slices.IndexFunc(queues, func(q ports.Queue) bool { return q.Name == queue })
	if at < 0 {
		e.Errorf("Queues does not list %q", queue)
		return
	}
	e.Same("the settings of "+queue, queues[at].Settings, want)
	e.Same("the settings of "+queue+" in Stats", e.Stats(queue).Queue.Settings, want)
}

func settingsNone(e *env.Env) { haveSettings(e, env.Orders, core.Settings{}) }

func settingsChange(e *env.Env) {
	for _, s := range []core.Settings{
		settingsOf(1, "max-running", "20"),
		settingsOf(2, "max-lanes", "3", "max-running", "20", "morgue-age", "720h0m0s", "morgue-count", "1000"),
		settingsOf(3, "max-running", "5"),
		settingsOf(4),
		settingsOf(5, "max-running", "5"),
	} {
		configure(e, s)
		haveSettings(e, env.Orders, s)
	}
}

func settingsZero(e *env.Env) {
	configure(e, settingsOf(1, "max-running", "0"))
	haveSettings(e, env.Orders, settingsOf(1, "max-running", "0"))
	configure(e, settingsOf(2))
	haveSettings(e, env.Orders, settingsOf(2))
}

func settingsUnknown(e *env.Env) {
	s := settingsOf(1, "max-running", "half", "zones", `{"a": ["b c", "ü"]}`)
	configure(e, s)
	haveSettings(e, env.Orders, s)

	next, err := s.Change([]core.SettingChange{{Name: core.SettingMaxLanes, Value: "2"}}, "bob", 7)
	e.Must(err, "Change")
	configure(e, next)
	haveSettings(e, env.Orders, next)
}

func settingsTexts(e *env.Env) {
	s := core.Settings{Version: 1, By: "O'Brien \"\\<&>\u2028", At: core.MaxInstant, Set: []core.Setting{
		{Name: " ", Value: ""},
		{Name: `"\`, Value: "\n<&>\u2028'$1%s", By: "O'Brien \\ \t", At: core.MaxInstant},
		{Name: strings.Repeat("n", core.MaxSettingName), Value: strings.Repeat("v", core.MaxSettingValue),
			By: strings.Repeat("b", core.MaxSettingBy)},
		{Name: "ü", Value: "1 2", By: "-1", At: 1},
	}}
	for i := range core.MaxSettings - len(s.Set) {
		s.Set = append(s.Set, core.Setting{Name: fmt.Sprintf("%s%02d", strings.Repeat("ü", 31), i), At: env.Start})
	}
	slices.SortFunc(s.Set, func(a, b core.Setting) int { return strings.Compare(a.Name, b.Name) })
	configure(e, s)
	haveSettings(e, env.Orders, s)
}

func settingsConflict(e *env.Env) {
	refused := func(s core.Settings) {
		e.TB.Helper()
		e.Refused(fmt.Sprintf("Configure of version %d", s.Version),
			e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: env.Orders, Settings: s}), ports.ErrSettingsConflict)
	}

	refused(settingsOf(2, "max-lanes", "1"))
	haveSettings(e, env.Orders, core.Settings{})

	configure(e, settingsOf(1, "max-lanes", "1"))
	configure(e, settingsOf(2, "max-lanes", "2"))
	for _, s := range []core.Settings{
		settingsOf(1, "max-lanes", "1"), // a repeat that is late
		settingsOf(1, "max-lanes", "3"),
		settingsOf(2, "max-lanes", "3"),
		settingsOf(2),
		settingsOf(4, "max-lanes", "3"),
		settingsOf(core.MaxSettingsVersion, "max-lanes", "3"),
	} {
		refused(s)
	}

	byAnother := settingsOf(2, "max-lanes", "2")
	byAnother.Set[0].By = "bob"
	refused(byAnother)
	later := settingsOf(2, "max-lanes", "2")
	later.Set[0].At++
	refused(later)
	changedByAnother := settingsOf(2, "max-lanes", "2")
	changedByAnother.By = "bob"
	refused(changedByAnother)
	changedLater := settingsOf(2, "max-lanes", "2")
	changedLater.At++
	refused(changedLater)
	haveSettings(e, env.Orders, settingsOf(2, "max-lanes", "2"))
}

func settingsConflictNames(e *env.Env) {
	e.Declare("mail", 1)
	present := settingsOf(1, "max-lanes", "1", "max-running", "9")
	present.Set[1].By, present.Set[1].At = "bob", present.Set[1].At+1
	configure(e, present)

	for queue, want := range map[string]core.Settings{env.Orders: present, "mail": {}} {
		err := e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: queue, Settings: settingsOf(3)})
		conflict, ok := errors.AsType[*ports.SettingsConflictError](err)
		if !ok {
			e.Errorf("Configure of %s returned error %v, want a *SettingsConflictError", queue, err)
			continue
		}
		e.Same("the conflict", *conflict, ports.SettingsConflictError{Queue: queue, Settings: want})
	}
}

func settingsRepeat(e *env.Env) {
	for version := range int64(2) {
		s := settingsOf(version+1, "max-lanes", fmt.Sprint(version))
		for range 3 {
			configure(e, s)
			haveSettings(e, env.Orders, s)
		}
	}
	empty := settingsOf(3)
	configure(e, empty)
	configure(e, empty)
	haveSettings(e, env.Orders, empty)
}

func settingsRace(e *env.Env) {
	handles := []ports.ShardStore{e.Store, e.Open()}
	for version := range int64(5) {
		errs := make([]error, len(handles))
		var wg sync.WaitGroup
		for i, store := range handles {
			wg.Go(func() {
				errs[i] = store.Configure(e.Ctx, ports.ConfigureRequest{
					Queue:    env.Orders,
					Settings: settingsOf(version+1, "max-lanes", fmt.Sprint(i)),
				})
			})
		}
		wg.Wait()

		winner := slices.Index(errs, nil)
		if winner < 0 {
			e.Errorf("no handle has made version %d: %v", version+1, errs)
			return
		}
		want := settingsOf(version+1, "max-lanes", fmt.Sprint(winner))
		haveSettings(e, env.Orders, want)
		haveSettings(e.With(handles[1]), env.Orders, want)

		conflict, ok := errors.AsType[*ports.SettingsConflictError](errs[1-winner])
		if !ok {
			e.Errorf("the other handle returned error %v, want a *SettingsConflictError", errs[1-winner])
			return
		}
		e.Same("what the other handle met", conflict.Settings, want)
	}
}

func settingsStay(e *env.Env) {
	s := settingsOf(1, "max-lanes", "3", "max-running", "20")
	configure(e, s)
	merge := core.MergeRule{Stays: core.Highest}

	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a pause", func() error { return e.Store.Pause(e.Ctx, env.Orders) }},
		{"a resume", func() error { return e.Store.Resume(e.Ctx, env.Orders) }},
		{"a change of the merge rule", func() error {
			return e.Store.SetMerge(e.Ctx, ports.SetMergeRequest{Queue: env.Orders, Merge: merge})
		}},
		{"a declaration", func() error {
			_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: env.Orders, Shards: 1, Merge: merge})
			return err
		}},
		{"a refused declaration", func() error {
			_, err := e.Store.Declare(e.Ctx, ports.DeclareRequest{Queue: env.Orders, Shards: 2, Merge: merge})
			e.Refused("Declare with another shard count", err, ports.ErrShardCountMismatch)
			return nil
		}},
		{"a recount", func() error {
			_, err := e.Store.Recount(e.Ctx, ports.RecountRequest{Shard: e.Shard})
			return err
		}},
	} {
		e.Must(step.do(), step.what)
		haveSettings(e, env.Orders, s)
		haveSettings(e.With(e.Open()), env.Orders, s)
	}
	e.Same("whether the queue is paused", e.Stats(env.Orders).Queue.Paused, false)
}

func settingsOfQueues(e *env.Env) {
	want := map[string]core.Settings{env.Orders: {}, "mail": settingsOf(1, "max-lanes", "1")}
	for i, name := range []string{"mail", "order", "orders:settings", "orders.settings", "settings"} {
		e.Declare(name, 1)
		want[name] = settingsOf(1, "max-lanes", fmt.Sprint(i+1))
	}
	for name, s := range want {
		if s.Version > 0 {
			e.Must(e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: name, Settings: s}), "Configure")
		}
	}

	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	got := make(map[string]core.Settings)
	for _, q := range queues {
		got[q.Name] = q.Settings
	}
	e.Same("the settings of all queues", got, want)
}

func settingsForgotten(e *env.Env) {
	e.Declare("mail", 1)
	for _, queue := range []string{env.Orders, "mail"} {
		e.Must(e.Store.Configure(e.Ctx,
			ports.ConfigureRequest{Queue: queue, Settings: settingsOf(1, "max-lanes", "1")}), "Configure")
		haveSettings(e, queue, settingsOf(1, "max-lanes", "1"))
	}

	e.Forget()
	err := e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: env.Orders, Settings: settingsOf(2)})
	e.Refused("Configure of a forgotten queue", err, ports.ErrUnknownQueue)

	e.Declare(env.Orders, 2)
	haveSettings(e, env.Orders, core.Settings{})
	haveSettings(e, "mail", settingsOf(1, "max-lanes", "1"))
	configure(e, settingsOf(1, "max-running", "2"))
	haveSettings(e, env.Orders, settingsOf(1, "max-running", "2"))
}

func settingsUndeclared(e *env.Env) {
	configure(e, settingsOf(1, "max-lanes", "1"))
	for _, name := range []string{"none", "", "orders/settings", "/format", "/id"} {
		for version := range int64(2) {
			err := e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: name, Settings: settingsOf(version + 1)})
			e.Refused(fmt.Sprintf("Configure of the queue %q", name), err, ports.ErrUnknownQueue)
		}
	}

	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	want := e.Declared[env.Orders]
	want.Settings = settingsOf(1, "max-lanes", "1")
	e.Same("the queues", queues, []ports.Queue{want})
}

func settingsInvalid(e *env.Env) {
	configure(e, settingsOf(1, "max-lanes", "1"))
	tooMany := core.Settings{Version: 2}
	for i := range core.MaxSettings + 1 {
		tooMany.Set = append(tooMany.Set, core.Setting{Name: fmt.Sprintf("n%02d", i)})
	}

	for what, s := range map[string]core.Settings{
		"version 0":              settingsOf(0),
		"a negative version":     settingsOf(-1),
		"a version above 2^53":   settingsOf(core.MaxSettingsVersion + 1),
		"broken settings":        {Version: 2, Broken: true},
		"too many":               tooMany,
		"an empty name":          settingsOf(2, "", "1"),
		"a name that is no text": settingsOf(2, "a\xff", "1"),
		"a long name":            settingsOf(2, strings.Repeat("n", core.MaxSettingName+1), "1"),
		"a value with NUL":       settingsOf(2, "a", "\x00"),
		"a long value":           settingsOf(2, "a", strings.Repeat("v", core.MaxSettingValue+1)),
		"a long By": {Version: 2, Set: []core.Setting{
			{Name: "a", By: strings.Repeat("b", core.MaxSettingBy+1)},
		}},
		"a By that is no text": {Version: 2, Set: []core.Setting{{Name: "a", By: "\xff"}}},
		"a negative time":      {Version: 2, Set: []core.Setting{{Name: "a", At: -1}}},
		"a late time":          {Version: 2, Set: []core.Setting{{Name: "a", At: core.MaxInstant + 1}}},
		"a long By of all":     {Version: 2, By: strings.Repeat("b", core.MaxSettingBy+1)},
		"a late time of all":   {Version: 2, At: core.MaxInstant + 1},
		"a name twice":         settingsOf(2, "a", "1", "a", "1"),
		"names out of order":   settingsOf(2, "b", "1", "a", "1"),
	} {
		err := e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: env.Orders, Settings: s})
		e.Refused("Configure with "+what, err, ports.ErrInvalidRequest)
	}
	haveSettings(e, env.Orders, settingsOf(1, "max-lanes", "1"))
}

func settingsSlices(e *env.Env) {
	want := settingsOf(1, "max-lanes", "1", "max-running", "2")
	given := want.Clone()
	configure(e, given)
	clear(given.Set)
	haveSettings(e, env.Orders, want)

	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	clear(queues[0].Settings.Set)
	clear(e.Stats(env.Orders).Queue.Settings.Set)
	err = e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: env.Orders, Settings: settingsOf(9)})
	if conflict, ok := errors.AsType[*ports.SettingsConflictError](err); ok {
		clear(conflict.Settings.Set)
	}
	haveSettings(e, env.Orders, want)
}

func settingsVectors(e *env.Env) {
	type vector struct {
		Version      int64
		Before       map[string]string
		Change       map[string]*string
		AfterVersion int64 `json:"after_version"`
		After        map[string]string
		New          []string
	}
	list, err := vectors.Read[vector]("settings.json")
	e.Must(err, "reading the vectors")

	rule := e.Rule
	for i, v := range list {
		e.Rule = fmt.Sprintf("%s, settings.json, case %d", rule, i)
		queue := fmt.Sprintf("case-%d", i)
		e.Declare(queue, 1)

		before := core.Settings{Version: v.Version}
		if v.Version > 0 {
			before.By, before.At = "ann", 1
		}
		for _, name := range slices.Sorted(maps.Keys(v.Before)) {
			before.Set = append(before.Set, core.Setting{Name: name, Value: v.Before[name], By: "ann", At: 1})
		}
		if v.Version > 0 {
			e.Must(e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: queue, Settings: before}), "Configure")
		}

		var changes []core.SettingChange
		for name, value := range v.Change {
			c := core.SettingChange{Name: name, Unset: value == nil}
			if value != nil {
				c.Value = *value
			}
			changes = append(changes, c)
		}
		want := before
		if after, err := before.Change(changes, "bob", 2); err == nil && after.Version > before.Version {
			e.Must(e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: queue, Settings: after}), "Configure")
			want = core.Settings{Version: v.AfterVersion, By: "bob", At: 2}
			for _, name := range slices.Sorted(maps.Keys(v.After)) {
				s := core.Setting{Name: name, Value: v.After[name], By: "ann", At: 1}
				if slices.Contains(v.New, name) {
					s.By, s.At = "bob", 2
				}
				want.Set = append(want.Set, s)
			}
		}
		haveSettings(e, queue, want)
	}
}
