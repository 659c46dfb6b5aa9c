package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

func TestSettingsVectors(t *testing.T) {
	type vector struct {
		About        string
		Version      int64
		Before       map[string]string
		Change       map[string]*string
		AfterVersion int64 `json:"after_version"`
		After        map[string]string
		New          []string
	}
	for _, v := range vectors[vector](t, "settings.json") {
		t.Run(v.About, func(t *testing.T) {
			before := core.Settings{Version: v.Version}
			if v.Version > 0 {
				before.By, before.At = "ann", 1
			}
			for _, name := range slices.Sorted(maps.Keys(v.Before)) {
				before.Set = append(before.Set, core.Setting{Name: name, Value: v.Before[name], By: "ann", At: 1})
			}
			var changes []core.SettingChange
			for name, value := range v.Change {
				c := core.SettingChange{Name: name, Unset: value == nil}
				if value != nil {
					c.Value = *value
				}
				changes = append(changes, c)
			}

			kept := before.Clone()
			got, err := before.Change(changes, "bob", 2)
			equal(t, "the settings before, afterwards", kept, before)
			if v.After == nil {
				if !errors.Is(err, core.ErrInvalidSetting) {
					t.Fatalf("the error is %v, not ErrInvalidSetting", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}

			want := core.Settings{Version: v.AfterVersion, By: before.By, At: before.At}
			if v.AfterVersion > v.Version {
				want.By, want.At = "bob", 2
			}
			for _, name := range slices.Sorted(maps.Keys(v.After)) {
				s := core.Setting{Name: name, Value: v.After[name], By: "ann", At: 1}
				if slices.Contains(v.New, name) {
					s.By, s.At = "bob", 2
				}
				want.Set = append(want.Set, s)
			}
			equal(t, "the settings after the change", want, got)
		})
	}
}

func TestSettingsAreRead(t *testing.T) {
	s, err := core.Settings{}.Change([]core.SettingChange{
		{Name: core.SettingMaxRunning, Value: "20"},
		{Name: core.SettingMaxLanes, Value: "0"},
		{Name: core.SettingMorgueAge, Value: "720h"},
		{Name: core.SettingMorgueCount, Value: "1000000"},
	}, "ann", 7)
	if err != nil {
		t.Fatal(err)
	}

	running, set := s.MaxRunning()
	equal(t, "max-running", "20 true", fmt.Sprint(running, set))
	lanes, set := s.MaxLanes()
	equal(t, "max-lanes", "0 true", fmt.Sprint(lanes, set))
	age, set := s.MorgueAge()
	equal(t, "morgue-age", "720h0m0s true", fmt.Sprint(age, set))
	count, set := s.MorgueCount()
	equal(t, "morgue-count", "1000000 true", fmt.Sprint(count, set))
	one, _ := s.Find(core.SettingMorgueAge)
	equal(t, "a setting", core.Setting{Name: "morgue-age", Value: "720h0m0s", By: "ann", At: 7}, one)

	_, set = core.Settings{}.MaxRunning()
	equal(t, "whether an unset setting is set", false, set)
	_, ok := core.Settings{}.Find(core.SettingMaxLanes)
	equal(t, "whether an unset setting is found", false, ok)
}

// TestSettingsOfNewerProgramsAreUnset has values that only a newer version accepts: for this one they
// are unset.
func TestSettingsOfNewerProgramsAreUnset(t *testing.T) {
	s := core.Settings{Version: 1, Set: []core.Setting{
		{Name: core.SettingMaxLanes, Value: "half"},
		{Name: core.SettingMaxRunning, Value: "99999999"},
		{Name: core.SettingMorgueAge, Value: "P30D"},
		{Name: core.SettingMorgueCount, Value: ""},
	}}
	_, lanes := s.MaxLanes()
	_, running := s.MaxRunning()
	_, age := s.MorgueAge()
	_, count := s.MorgueCount()
	equal(t, "what is set", "false false false false", fmt.Sprint(lanes, running, age, count))
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSettingErrorsNameTheCure(t *testing.T) {
	tests := []struct{ name, text, cure string }{
		{"max-runing", "1", "max-lanes, max-running, morgue-age, morgue-count"},
		{core.SettingMaxRunning, "x", "a whole number from 1 to 1048576, or 0 for no limit"},
		{core.SettingMorgueAge, "1s", "720h or 30d, or 0 to keep dead letters for ever"},
	}
	for _, tt := range tests {
		if _, err := core.ParseSetting(tt.name, tt.text); err == nil || !strings.Contains(err.Error(), tt.cure) {
			t.Errorf("%s %q: the error %v does not name %q", tt.name, tt.text, err, tt.cure)
		}
	}
}

func TestDescribedSettings(t *testing.T) {
	kinds := core.DescribedSettings()
	if !slices.IsSortedFunc(kinds, func(a, b core.SettingKind) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the settings are not in order of name")
	}
	for _, k := range kinds {
		if k.About == "" || strings.HasSuffix(k.About, ".") || k.Unit == "" || k.Accepts == "" {
			t.Errorf("the description of %s lacks something: %+v", k.Name, k)
		}
	}
}

func TestSettingsChangeRefuses(t *testing.T) {
	full := core.Settings{Version: 1}
	for i := range core.MaxSettings {
		full.Set = append(full.Set, core.Setting{Name: fmt.Sprintf("a%02d", i), Value: "x"})
	}
	last := core.Settings{Version: core.MaxSettingsVersion}
	one := core.SettingChange{Name: core.SettingMaxLanes, Value: "1"}

	tests := []struct {
		what    string
		before  core.Settings
		changes []core.SettingChange
		at      core.Instant
	}{
		{"too many settings", full, []core.SettingChange{one}, 0},
		{"after the last version", last, []core.SettingChange{one}, 0},
		{"twice at once", core.Settings{}, []core.SettingChange{one, one}, 0},
		{"an invalid time", core.Settings{}, []core.SettingChange{one}, -1},
	}
	for _, tt := range tests {
		got, err := tt.before.Change(tt.changes, "", tt.at)
		if !errors.Is(err, core.ErrInvalidSetting) || !got.Equal(core.Settings{}) {
			t.Errorf("%s: %+v, %v", tt.what, got, err)
		}
	}

	swapped := []core.SettingChange{{Name: "a00", Unset: true}, one}
	if got, err := full.Change(swapped, "", 0); err != nil || len(got.Set) != core.MaxSettings {
		t.Errorf("a setting in the place of another: %d settings, %v", len(got.Set), err)
	}
}

func TestBrokenSettingsAreReplaced(t *testing.T) {
	broken := core.Settings{Version: 4, Broken: true}
	same, err := broken.Change(nil, "ann", 1)
	if err != nil || !same.Equal(broken) {
		t.Errorf("a change of nothing: %+v, %v", same, err)
	}
	got, err := broken.Change([]core.SettingChange{{Name: core.SettingMaxLanes, Unset: true}}, "ann", 1)
	if err != nil || !got.Equal(core.Settings{Version: 5, By: "ann", At: 1}) {
		t.Errorf("an unset: %+v, %v", got, err)
	}
	if err := broken.Validate(); !errors.Is(err, core.ErrInvalidSetting) {
		t.Errorf("Validate of broken settings: %v", err)
	}
}

func TestSettingsNameWhoSetThem(t *testing.T) {
	by := "a\x00b\xff" + strings.Repeat("c", core.MaxSettingBy)
	got, err := core.Settings{}.Change([]core.SettingChange{{Name: core.SettingMaxLanes, Value: "1"}}, by, 1)
	if err != nil || len(got.Set[0].By) > core.MaxSettingBy || core.Text(got.Set[0].By) != got.Set[0].By {
		t.Errorf("By is %q, %v", got.Set[0].By, err)
	}

	unset, err := got.Change([]core.SettingChange{{Name: core.SettingMaxLanes, Unset: true}}, "bob", 2)
	if want := (core.Settings{Version: 2, By: "bob", At: 2}); err != nil || !unset.Equal(want) {
		t.Errorf("a change that only unsets: %+v, %v", unset, err)
	}
	for _, wrong := range []core.Settings{
		{Version: 1, By: by},
		{Version: 1, At: -1},
		{Version: 1, At: core.MaxInstant + 1},
	} {
		if err := wrong.Validate(); !errors.Is(err, core.ErrInvalidSetting) {
			t.Errorf("%+v is valid: %v", wrong, err)
		}
	}
}

// TestSettingsChangeAgainstAMap compares random changes with a map.
func TestSettingsChangeAgainstAMap(t *testing.T) {
	values := map[string][]string{
		core.SettingMaxRunning:  {"0", "1", "1048576"},
		core.SettingMaxLanes:    {"0", "3"},
		core.SettingMorgueAge:   {"0s", "1m0s", (90 * 24 * time.Hour).String()},
		core.SettingMorgueCount: {"0", "5"},
		"newer":                 {"unset"},
	}
	names := slices.Sorted(maps.Keys(values))

	rapid.Check(t, func(t *rapid.T) {
		s := core.Settings{Version: 1, Set: []core.Setting{{Name: "newer", Value: "x", By: "z"}}}
		want := map[string]core.Setting{"newer": s.Set[0]}

		for at := range core.Instant(8) {
			var changes []core.SettingChange
			version := s.Version
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "names") {
				value := rapid.SampledFrom(values[name]).Draw(t, "value")
				c := core.SettingChange{Name: name, Value: value, Unset: name == "newer" || rapid.Bool().Draw(t, "unset")}
				changes = append(changes, c)

				had, set := want[name]
				switch {
				case c.Unset && set:
					delete(want, name)
					version = s.Version + 1
				case !c.Unset && had.Value != value:
					want[name] = core.Setting{Name: name, Value: value, By: "ann", At: at}
					version = s.Version + 1
				}
			}

			next, err := s.Change(changes, "ann", at)
			if err != nil || next.Version != version || len(next.Set) != len(want) || next.Validate() != nil {
				t.Fatalf("%+v to %+v: %+v, %v; want version %d of %v", changes, s, next, err, version, want)
			}
			for _, e := range next.Set {
				if want[e.Name] != e {
					t.Fatalf("%+v, not %+v", e, want[e.Name])
				}
			}
			s = next
		}
	})
}
