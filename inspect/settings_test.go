package inspect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// set returns the changes that set settings to values, from names and values in turn. An empty value
// unsets.
func set(namesAndValues ...string) (changes []core.SettingChange) {
	for at := 0; at < len(namesAndValues); at += 2 {
		name, value := namesAndValues[at], namesAndValues[at+1]
		changes = append(changes, core.SettingChange{Name: name, Value: value, Unset: value == ""})
	}
	return changes
}

// configure changes settings of the queue orders, as an operator.
func (s *fixture) configure(who string, changes []core.SettingChange, o inspect.ConfigureOptions) (
	inspect.Configured, error,
) {
	s.t.Helper()
	ctx := inspect.WithActor(s.t.Context(), inspect.Actor{Name: who, Reason: "why"})
	return s.Configure(ctx, "orders", changes, o)
}

func TestConfigureStoresWhoSetWhatAndWhen(t *testing.T) {
	s := newFixture(t)
	r, err := s.configure("ann", set("max-running", "20", "morgue-age", "30d"), inspect.ConfigureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := core.InstantOf(epoch)
	want := inspect.Configured{
		Changed: []string{"max-running", "morgue-age"},
		After: core.Settings{Version: 1, By: "ann", At: now, Set: []core.Setting{
			{Name: "max-running", Value: "20", By: "ann", At: now},
			{Name: "morgue-age", Value: "720h0m0s", By: "ann", At: now},
		}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}

	s.advance(time.Hour)
	r, err = s.configure("bob", set("max-running", "20", "morgue-age", ""), inspect.ConfigureOptions{})
	if err != nil || !cmp.Equal(r.Changed, []string{"morgue-age"}) || !r.Before.Equal(want.After) {
		t.Errorf("a change of one of two: %+v, %v", r, err)
	}
	queues, err := s.Queues(t.Context())
	if err != nil || !queues[0].Settings.Equal(r.After) || r.After.By != "bob" || len(r.After.Set) != 1 {
		t.Errorf("the queue has %+v, %v; want %+v by bob", queues, err, r.After)
	}

	for a := range s.Actions(t.Context(), inspect.ActionsOptions{}) {
		if a.Verb != "configure" || a.Queue != "orders" || a.Handled != 1 || a.Actor.Reason != "why" ||
			a.Filter != "max-running=20, unset morgue-age" {
			t.Errorf("the audit has %+v", a)
		}
		break
	}
}

// What a dry run and a refused change would do is not done, and only the refused one is in the audit.
func TestConfigureStoresNothingOfADryRunOrARefusedChange(t *testing.T) {
	s := newFixture(t)
	r, err := s.configure("ann", set("max-lanes", "3"), inspect.ConfigureOptions{DryRun: true})
	if err != nil || r.After.Version != 1 || !cmp.Equal(r.Changed, []string{"max-lanes"}) {
		t.Errorf("a dry run: %+v, %v", r, err)
	}
	if verbs := audited(t, s.Inspector, ""); verbs != nil {
		t.Errorf("after a dry run the audit has %q", verbs)
	}

	for name, tt := range map[string]struct {
		changes []core.SettingChange
		is      error
		text    string
	}{
		"an unknown name":       {set("max-lane", "3"), inspect.ErrInvalidSetting, "max-lanes, max-running"},
		"a wrong value":         {set("max-lanes", "3", "max-running", "x"), inspect.ErrInvalidSetting, "0 for no limit"},
		"twice":                 {set("max-lanes", "3", "max-lanes", ""), inspect.ErrInvalidSetting, "twice"},
		"a wrong name to unset": {set("max-lane", ""), inspect.ErrInvalidSetting, "max-lanes, max-running"},
		"nothing":               {nil, inspect.ErrInvalidOptions, "no setting is named"},
	} {
		if _, err := s.configure("ann", tt.changes, inspect.ConfigureOptions{}); !errors.Is(err, tt.is) ||
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v; want %v with %q", name, err, tt.is, tt.text)
		}
	}

	queues, err := s.Queues(t.Context())
	if err != nil || !queues[0].Settings.Equal(core.Settings{}) {
		t.Errorf("the queue has %+v, %v", queues, err)
	}
	if verbs := audited(t, s.Inspector, ""); len(verbs) != 5 {
		t.Errorf("the audit has %q, want each refused change", verbs)
	}
}

// Of two operators one gets the conflict: if it names the version that it has seen, before anything
// is stored, and otherwise by the store.
func TestConfigureReturnsConflicts(t *testing.T) {
	s := newFixture(t)
	seen, later := int64(0), int64(1)
	if _, err := s.configure("ann", set("max-lanes", "3"), inspect.ConfigureOptions{Version: &seen}); err != nil {
		t.Fatal(err)
	}
	h := s.intercept()
	stored := 0
	h.before = func(method string) error {
		if method == "Configure" {
			stored++
		}
		return nil
	}
	_, err := s.configure("bob", set("max-lanes", "4"), inspect.ConfigureOptions{Version: &seen})
	conflict, ok := errors.AsType[*inspect.SettingsConflictError](err)
	if !ok || !errors.Is(err, inspect.ErrSettingsConflict) || conflict.Settings.By != "ann" || stored != 0 ||
		!strings.Contains(err.Error(), `ann changed them at 2030-01-02 03:04:00 UTC: max-lanes to "3"`) {
		t.Errorf("%v, and %d calls of the store; want a conflict with ann and none", err, stored)
	}

	// cat changes them after bob has read them.
	h.before = func(method string) error {
		if method != "Configure" || stored > 0 {
			return nil
		}
		stored++
		next, err := core.Settings{Version: 1}.Change(set("max-lanes", "9"), "cat", core.InstantOf(epoch))
		if err == nil {
			err = s.store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: next})
		}
		return err
	}
	_, err = s.configure("bob", set("max-lanes", "4"), inspect.ConfigureOptions{Version: &later})
	if conflict, ok = errors.AsType[*inspect.SettingsConflictError](err); !ok || conflict.Settings.By != "cat" {
		t.Errorf("%v; want a conflict with cat", err)
	}
}

// A reply that is lost is no conflict with oneself.
func TestConfigureRepeatsALostCall(t *testing.T) {
	s := newFixture(t)
	h := s.intercept()
	calls := 0
	h.after = func(method string) error {
		if method != "Configure" {
			return nil
		}
		if calls++; calls == 1 {
			return errors.New("the reply is lost")
		}
		return nil
	}
	r, err := s.configure("ann", set("max-lanes", "3"), inspect.ConfigureOptions{})
	if err != nil || calls != 2 || r.After.Version != 1 {
		t.Errorf("%+v, %v after %d calls; want version 1 after 2", r, err, calls)
	}
}

// announceQueue announces a server of the queue orders, with the values of its code.
func (s *fixture) announceQueue(name string, version int64, code map[string]string) {
	s.t.Helper()
	r := ports.AnnounceRequest{TTL: time.Hour, Node: ports.Node{
		Owner: "owner of " + name, Name: name, Queues: []string{"orders"},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{Queue: "orders", Code: code, SettingsVersion: version}}},
	}}
	if _, err := s.store.Announce(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

func TestSettingsAreShownBesideTheCode(t *testing.T) {
	s := newFixture(t)
	s.announce("o0", "of another queue", time.Hour)
	s.announceQueue("green", 0, map[string]string{"max-running": "50", "morgue-count": "7"})
	s.announceQueue("blue", 1, map[string]string{"max-running": "50", "max-lanes": "2"})
	s.announceQueue("red", 1, map[string]string{"max-running": "50"})
	if _, err := s.configure("ann", set("max-running", "20"), inspect.ConfigureOptions{}); err != nil {
		t.Fatal(err)
	}

	got, err := s.Settings(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for at := range got.Settings {
		k := &got.Settings[at]
		if k.About == "" || k.Accepts == "" || k.Unit == "" {
			t.Errorf("%s lacks its description: %+v", k.Name, k)
		}
		k.About, k.Accepts, k.Unit = "", "", ""
	}
	all := []string{"blue", "green", "red"}
	want := inspect.QueueSettings{
		Queue: "orders", Version: 1, By: "ann", At: epoch, Servers: 3, Following: 2, Behind: []string{"green"},
		Settings: []inspect.SettingState{
			{Name: "max-lanes", Code: []inspect.CodeValue{
				{Value: "0", Servers: []string{"green", "red"}}, {Value: "2", Servers: []string{"blue"}},
			}},
			{Name: "max-running", InForce: "20", Set: true, Value: "20", By: "ann", At: epoch,
				Code: []inspect.CodeValue{{Value: "50", Servers: all}}},
			{Name: "morgue-age", InForce: "0s", Code: []inspect.CodeValue{{Value: "0s", Servers: all}}},
			{Name: "morgue-count", Code: []inspect.CodeValue{
				{Value: "0", Servers: []string{"blue", "red"}}, {Value: "7", Servers: []string{"green"}},
			}},
			{Name: "rate", InForce: "none", Code: []inspect.CodeValue{{Value: "none", Servers: all}}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the settings (-want +got):\n%s", diff)
	}
}

// Settings of a newer version are listed as such, and so are values that only a newer one can read.
func TestSettingsOfANewerVersionAreShownAsUnknown(t *testing.T) {
	s := newFixture(t)
	newer := core.Settings{Version: 1, Set: []core.Setting{
		{Name: "max-lanes", Value: "half", By: "ann"}, {Name: "zones", Value: "a b", By: "ann"},
	}}
	if err := s.store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: newer}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Settings(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"max-lanes": "half", "zones": "a b"} {
		if k := got.Find(name); k == nil || !k.Unknown || !k.Set || k.Value != value || k.InForce != "" {
			t.Errorf("%s is %+v", name, k)
		}
	}
	if got.Servers != 0 || got.Find("max-running").InForce != "" || got.Find("none") != nil {
		t.Errorf("without a server: %+v", got)
	}

	broken := inspect.Queue{Name: "orders", Settings: inspect.StoredSettings{Settings: core.Settings{Version: 3, Broken: true}}}
	node := inspect.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", SettingsVersion: 3}},
	}}
	of := inspect.SettingsOf(&broken, []inspect.Node{node})
	if !of.Broken || of.Following != 0 || of.Find("max-running").InForce != "" {
		t.Errorf("settings that can't be read: %+v", of)
	}
}

func TestConfigureEndsWithItsContext(t *testing.T) {
	s := newFixture(t)
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Configure(ctx, "orders", set("max-lanes", "1"), inspect.ConfigureOptions{}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}
