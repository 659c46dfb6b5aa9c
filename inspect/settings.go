package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// SettingsConflictError is an [ErrSettingsConflict] with the present settings.
type SettingsConflictError = ports.SettingsConflictError

// StoredSettings are the settings of a queue that operators have set, as the store has them.
type StoredSettings struct{ core.Settings }

// String returns the names and values, such as "max-running=20, morgue-age=720h0m0s". It is empty if
// nothing is set.
func (s StoredSettings) String() string {
	if s.Broken {
		return "can't be read"
	}
	var parts []string
	for _, e := range s.Set {
		parts = append(parts, e.Name+"="+e.Value)
	}
	return strings.Join(parts, ", ")
}

// QueueSettings are the settings of a queue that operators have set while servers run (docs/rules.md
// 11), beside what the programs of its servers have.
type QueueSettings struct {
	Queue string `json:"queue" class:"queue" doc:"the queue"`
	// Version is for ConfigureOptions.Version.
	Version int64     `json:"version" class:"public" doc:"the version of the settings, which each change raises by one; 0 if nothing was ever set"`
	By      string    `json:"by,omitempty" class:"public" doc:"who made the last change; absent if nobody did or the name is unknown"`
	At      time.Time `json:"at,omitzero" class:"public" doc:"when the last change was made; absent if nothing was ever set"`
	// Broken is true if the store can't read the settings. Servers then continue with those that they
	// have read, and a server that starts uses its code.
	Broken bool `json:"broken,omitempty" class:"public" doc:"whether the stored settings can't be read; a change replaces them"`
	// Servers is the number of running servers of the queue. Following is how many of them follow
	// Version, by their last announcement.
	Servers   int `json:"servers" class:"public" doc:"the number of running servers of the queue"`
	Following int `json:"following" class:"public" doc:"how many of these follow this version, by their last announcement"`
	// Behind are the names of the others.
	Behind []string `json:"behind,omitempty" class:"public" wide:"true" doc:"the names of the servers that don't follow this version yet"`
	// Settings are those that this version of the program knows, in order of name, and then others
	// that are set.
	Settings []SettingState `json:"settings" class:"public" doc:"the settings: those that this version knows, and others that are set"`
}

// SettingState is one setting of a queue.
type SettingState struct {
	Name string `json:"name" class:"public" doc:"its name"`
	// InForce is the value that applies. It is empty if that is unknown: the programs of the servers
	// differ, no server runs, or the settings can't be read.
	InForce string `json:"in_force,omitempty" class:"public" doc:"the value that applies: what operators have set, otherwise that of the servers' code; absent if no server runs, their code differs, or the value can't be read"`
	// Set is true if an operator has set it. Then it has this Value, By and At.
	Set   bool      `json:"set" class:"public" doc:"whether an operator has set it"`
	Value string    `json:"value,omitempty" class:"public" doc:"the value that was set; absent if it is unset"`
	By    string    `json:"by,omitempty" class:"public" doc:"who has set it; absent if it is unset or the name is unknown"`
	At    time.Time `json:"at,omitzero" class:"public" doc:"when it was set; absent if it is unset"`
	// Code are the values in the code of the running servers, with the most servers first.
	Code []CodeValue `json:"code,omitempty" class:"public" doc:"the values in the code of the running servers; absent if none runs"`
	// Unknown is true if this version does not know the name, or can't read the value.
	Unknown bool   `json:"unknown,omitempty" class:"public" doc:"whether only a newer version knows the setting, or can read its value"`
	Unit    string `json:"unit,omitempty" class:"public" wide:"true" doc:"what the value counts or measures"`
	About   string `json:"about,omitempty" class:"public" wide:"true" doc:"what it is"`
	Accepts string `json:"accepts,omitempty" class:"public" wide:"true" doc:"the values that it accepts"`
}

// CodeValue is the value of a setting in the code of some servers.
type CodeValue struct {
	Value   string   `json:"value" class:"public" doc:"the value; 0 and none mean no limit, or to keep for ever"`
	Servers []string `json:"servers" class:"public" doc:"the names of the servers with it"`
}

// Settings returns the settings of a queue, with what its servers announce of them.
func (i *Inspector) Settings(ctx context.Context, queue string) (QueueSettings, error) {
	record, err := i.record(ctx, queue)
	if err != nil {
		return QueueSettings{}, err
	}
	nodes, err := i.Nodes(ctx)
	if err != nil {
		return QueueSettings{}, err
	}
	q := queueOf(&record)
	return SettingsOf(&q, nodes), nil
}

// SettingsOf returns the settings of a queue that was read before, with what servers announce of
// them. It does not read the store.
func SettingsOf(q *Queue, nodes []Node) QueueSettings {
	stored := &q.Settings.Settings
	of := QueueSettings{
		Queue:   q.Name,
		Version: stored.Version,
		By:      stored.By,
		At:      timeOf(stored.At),
		Broken:  stored.Broken,
	}

	var running []announcedQueue
	for at := range nodes {
		n := &nodes[at]
		if n.State == NodeGone || !slices.Contains(n.Queues, q.Name) {
			continue
		}
		a := announcedQueue{server: n.Name}
		if i := slices.IndexFunc(n.Status.Queues, func(s ports.QueueStatus) bool { return s.Queue == q.Name }); i >= 0 {
			a.status = &n.Status.Queues[i]
		}
		running = append(running, a)
		if a.follows(stored) {
			of.Following++
		} else {
			of.Behind = append(of.Behind, n.Name)
		}
	}
	of.Servers = len(running)

	for _, kind := range core.DescribedSettings() {
		of.Settings = append(of.Settings, settingState(stored, &kind, running))
	}
	for _, s := range stored.Set {
		if !slices.ContainsFunc(of.Settings, func(known SettingState) bool { return known.Name == s.Name }) {
			of.Settings = append(of.Settings, SettingState{
				Name:    s.Name,
				Set:     true,
				Value:   s.Value,
				By:      s.By,
				At:      timeOf(s.At),
				Unknown: true,
			})
		}
	}
	return of
}

// timeOf returns an instant as a time, the zero one for 0, which no operator's clock had.
func timeOf(at core.Instant) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return at.Time()
}

// Find returns a setting by its name, or nil if there is none.
func (s *QueueSettings) Find(name string) *SettingState {
	for at := range s.Settings {
		if s.Settings[at].Name == name {
			return &s.Settings[at]
		}
	}
	return nil
}

// announcedQueue is what a running server of a queue announces of it. status is nil if it has
// announced nothing yet.
type announcedQueue struct {
	server string
	status *ports.QueueStatus
}

// follows reports whether the server follows the stored settings. No server follows settings that
// can't be read.
func (a *announcedQueue) follows(stored *core.Settings) bool {
	if stored.Broken {
		return false
	}
	if a.status == nil {
		return stored.Version == 0
	}
	return a.status.SettingsVersion == stored.Version
}

// settingState returns the state of a setting that this version knows.
func settingState(stored *core.Settings, kind *core.SettingKind, running []announcedQueue) SettingState {
	s := SettingState{Name: kind.Name, Unit: kind.Unit, About: kind.About, Accepts: kind.Accepts}
	for at := range running {
		if running[at].status != nil {
			s.addCode(running[at].server, running[at].status.Code[kind.Name])
		}
	}
	slices.SortStableFunc(s.Code, func(a, b CodeValue) int { return cmp.Compare(len(b.Servers), len(a.Servers)) })

	set, isSet := stored.Find(kind.Name)
	if isSet {
		s.Set, s.Value, s.By, s.At = true, set.Value, set.By, timeOf(set.At)
		_, err := core.ParseSetting(set.Name, set.Value)
		s.Unknown = err != nil
	}

	switch {
	case stored.Broken, s.Unknown:
	case isSet:
		s.InForce = s.Value
	case len(s.Code) == 1:
		s.InForce = s.Code[0].Value
	}
	return s
}

// addCode adds a server with the value of its code. A setting without a value in the code has the
// value 0.
func (s *SettingState) addCode(server, value string) {
	canonical, err := core.ParseSetting(s.Name, cmp.Or(value, "0"))
	if err != nil { // the server is of another version
		canonical = value
	}
	at := slices.IndexFunc(s.Code, func(c CodeValue) bool { return c.Value == canonical })
	if at < 0 {
		at = len(s.Code)
		s.Code = append(s.Code, CodeValue{Value: canonical})
	}
	s.Code[at].Servers = append(s.Code[at].Servers, server)
}

// ConfigureOptions are the options of [Inspector.Configure]. The zero value changes the present
// settings, whatever they are.
type ConfigureOptions struct {
	// Version is the version of the settings that the caller has seen and wants to replace: see
	// QueueSettings.Version. nil means the present version.
	Version *int64
	// DryRun computes the change and stores nothing.
	DryRun bool
}

// Configured is the result of [Inspector.Configure].
type Configured struct {
	// Before and After are all settings of the queue.
	Before, After core.Settings
	// Changed are the names of the settings that were set to another value or unset, in order.
	Changed []string
}

// Configure changes settings of a queue while its servers run (docs/rules.md 11). Servers follow
// within a third of their LeaseTTL. The name of the actor of [WithActor] is stored with what was set.
// A change that changes nothing succeeds, and keeps the Version.
//
// It returns [ErrSettingsConflict], as a *[SettingsConflictError] with the present settings, if these
// have another version than ConfigureOptions.Version, or if somebody else has changed them during
// the call. Nothing was stored then. It returns [ErrInvalidSetting] for an unknown name, a value that
// the setting does not accept, and a setting that is named twice, and [ErrInvalidOptions] for no
// change.
func (i *Inspector) Configure(
	ctx context.Context, queue string, changes []core.SettingChange, o ConfigureOptions,
) (Configured, error) {
	const verb = "configure"
	d := i.begin(ctx, verb, queue, nil)
	d.action.Filter = auditText(changesText(changes))
	if o.DryRun {
		d.inspector = nil
	} else {
		d.start(ctx)
	}

	r, err := i.configure(ctx, queue, changes, &o, d.action.Actor)
	handled := len(r.Changed)
	if err != nil {
		handled = 0
	}
	d.end(ctx, handled, err)
	if err != nil {
		return r, fmt.Errorf("%s: %w", verb, err)
	}
	return r, nil
}

// configure is Configure without its record in the audit.
func (i *Inspector) configure(
	ctx context.Context, queue string, changes []core.SettingChange, o *ConfigureOptions, by string,
) (r Configured, err error) {
	if len(changes) == 0 {
		return r, fmt.Errorf("%w: no setting is named; name one to set or unset", ErrInvalidOptions)
	}
	record, err := i.record(ctx, queue)
	if err != nil {
		return r, err
	}
	present := record.Settings
	if o.Version != nil && *o.Version != present.Version {
		return r, &SettingsConflictError{Queue: queue, Settings: present}
	}

	nodes, err := persist(ctx, i, func(s Store) (ports.NodesReply, error) { return s.Nodes(ctx) })
	if err != nil {
		return r, err
	}
	for _, c := range changes {
		if _, set := present.Find(c.Name); c.Unset && !set {
			// A name that is written wrong would change nothing, and look like a success.
			if _, err := core.ParseSetting(c.Name, "0"); err != nil {
				return r, err
			}
		}
	}
	r.Before = present
	if r.After, err = present.Change(changes, by, nodes.Now); err != nil {
		return r, err
	}
	r.Changed = changedSettings(present, r.After)
	if o.DryRun || r.After.Equal(present) {
		return r, nil
	}

	_, err = persist(ctx, i, func(s Store) (struct{}, error) {
		return struct{}{}, s.Configure(ctx, ports.ConfigureRequest{Queue: queue, Settings: r.After})
	})
	return r, err
}

// changedSettings returns the names of settings with another value, in order.
func changedSettings(before, after core.Settings) (names []string) {
	for _, s := range slices.Concat(before.Set, after.Set) {
		was, had := before.Find(s.Name)
		is, has := after.Find(s.Name)
		if had != has || was.Value != is.Value {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// changesText returns changes as a phrase, such as "max-running=20, unset max-lanes".
func changesText(changes []core.SettingChange) string {
	var parts []string
	for _, c := range changes {
		if c.Unset {
			parts = append(parts, "unset "+c.Name)
		} else {
			parts = append(parts, c.Name+"="+c.Value)
		}
	}
	return strings.Join(parts, ", ")
}
