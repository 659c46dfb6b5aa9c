package service

import (
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// SettingsBody is a change of the settings of a queue.
type SettingsBody struct {
	Set     map[string]string `json:"set,omitempty" doc:"values by the names of settings; an equal value changes nothing"`
	Unset   []string          `json:"unset,omitempty" doc:"the names of settings to unset, so that the code of the servers applies"`
	Version *int64            `json:"version,omitempty" doc:"the version of the settings that the change replaces, as the client has seen it; by default the present one"`
	DryRun  bool              `json:"dry_run,omitempty" doc:"change nothing, and return what would change"`
}

func (b *SettingsBody) isPreview() bool { return b.DryRun }

// changes returns the changes of a body.
func (b *SettingsBody) changes() (changes []core.SettingChange) {
	for name, value := range b.Set {
		changes = append(changes, core.SettingChange{Name: name, Value: value})
	}
	for _, name := range b.Unset {
		changes = append(changes, core.SettingChange{Name: name, Unset: true})
	}
	return changes
}

// SettingsReply is the result of a change of settings.
type SettingsReply struct {
	Before  SetSettings `json:"before" doc:"the settings before the change"`
	After   SetSettings `json:"after" doc:"the settings after it"`
	Changed []string    `json:"changed" doc:"the names of the settings that were set to another value, or unset"`
}

// SetSettings are what operators have set of a queue.
type SetSettings struct {
	Version int64        `json:"version" doc:"the version of the settings; 0 if nothing was ever set"`
	By      string       `json:"by,omitempty" doc:"who made the last change"`
	At      time.Time    `json:"at,omitzero" doc:"when the last change was made"`
	Broken  bool         `json:"broken,omitempty" doc:"whether the stored settings can't be read; a change replaces them"`
	Set     []SetSetting `json:"set" doc:"the settings that are set, in order of name"`
}

// SetSetting is a setting that an operator has set.
type SetSetting struct {
	Name  string    `json:"name" doc:"its name"`
	Value string    `json:"value" doc:"its value"`
	By    string    `json:"by,omitempty" doc:"who has set it"`
	At    time.Time `json:"at" doc:"when it was set"`
}

func setSettingsOf(s *core.Settings) SetSettings {
	of := SetSettings{Version: s.Version, By: s.By, Broken: s.Broken, Set: []SetSetting{}}
	if s.At > 0 {
		of.At = s.At.Time().UTC()
	}
	for _, e := range s.Set {
		of.Set = append(of.Set, SetSetting{e.Name, e.Value, e.By, e.At.Time().UTC()})
	}
	return of
}

// Settings returns the settings, for [MorgueEffect].
func (s *SetSettings) Settings() *core.Settings {
	of := &core.Settings{Version: s.Version, By: s.By, Broken: s.Broken}
	for _, e := range s.Set {
		of.Set = append(of.Set, core.Setting{Name: e.Name, Value: e.Value, By: e.By, At: core.InstantOf(e.At)})
	}
	return of
}

func (c *call) configure(b *SettingsBody) (*SettingsReply, error) {
	r, err := c.inspector.Configure(c.ctx, c.queue, b.changes(), inspect.ConfigureOptions{
		Version: b.Version,
		DryRun:  b.DryRun,
	})
	if err != nil {
		return nil, err
	}
	reply := &SettingsReply{Before: setSettingsOf(&r.Before), After: setSettingsOf(&r.After), Changed: []string{}}
	reply.Changed = append(reply.Changed, r.Changed...)
	return reply, nil
}

// withSettings adds the present settings to a problem about a conflict of settings.
func (p *Problem) withSettings(err error) *Problem {
	if conflict, ok := errors.AsType[*inspect.SettingsConflictError](err); ok {
		present := setSettingsOf(&conflict.Settings)
		p.Settings = &present
	}
	return p
}

// settingsOf returns the settings of a queue whose record was read.
func (c *call) settingsOf(q *inspect.Queue) (row Row[inspect.QueueSettings], err error) {
	nodes, err := c.inspector.Nodes(c.ctx)
	if err != nil {
		return row, err
	}
	settings := inspect.SettingsOf(q, nodes)
	return view[inspect.QueueSettings](c, 0).Row(&settings), nil
}
