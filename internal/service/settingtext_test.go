package service

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func TestValuesOfSettingsAreWrittenAsPeopleTypeThem(t *testing.T) {
	for _, tt := range []struct{ name, value, text, shown string }{
		{"max-running", "20", "20", "20"},
		{"max-running", "0", "0", "no limit"},
		{"morgue-count", "0", "0", "no limit"},
		{"morgue-age", "720h0m0s", "30d", "30d"},
		{"morgue-age", "1h0m0s", "1h", "1h"},
		{"morgue-age", "1h30m0s", "1h30m", "1h30m"},
		{"morgue-age", "1m1s", "1m1s", "1m1s"},
		{"morgue-age", "0s", "0", "for ever"},
		{"rate", "none", "none", "no limit"},
		{"rate", "10/1m0s", "10/1m", "10/1m"},
		{"rate", "100/24h0m0s+20", "100/24h+20", "100/24h+20"},
		{"rate", "5/1.5s", "5/1.5s", "5/1.5s"},
		{"rate", "5/1h30m0s", "5/1h30m", "5/1h30m"},
		{"rate", "often", "often", "often"},
		{"morgue-age", "P30D", "P30D", "P30D"},
		{"zones", "a b", "a b", "a b"},
	} {
		if got := SettingText(tt.name, tt.value); got != tt.text {
			t.Errorf("%s %s is typed %q, want %q", tt.name, tt.value, got, tt.text)
		}
		if got := SettingValue(tt.name, tt.value); got != tt.shown {
			t.Errorf("%s %s is shown as %q, want %q", tt.name, tt.value, got, tt.shown)
		}
		if canonical, err := core.ParseSetting(tt.name, tt.text); err == nil && canonical != tt.value {
			t.Errorf("%s %s is read as %s, want %s", tt.name, tt.text, canonical, tt.value)
		}
	}
}

func TestOriginsOfSettings(t *testing.T) {
	code := func(value string, servers ...string) inspect.CodeValue {
		return inspect.CodeValue{Value: value, Servers: servers}
	}
	ago := noon.Add(-3 * time.Hour)
	for want, s := range map[string]inspect.SettingState{
		"set by ann 3 h ago; code has 50": {
			Set: true, Value: "20", By: "ann", At: ago, Code: []inspect.CodeValue{code("50", "a", "b")},
		},
		"set by somebody without a name 3 h ago": {Set: true, Value: "20", At: ago},
		"code":                                   {Code: []inspect.CodeValue{code("50", "a")}},
		"code differs: no limit on a, b, c and 1 more, 2 on e": {
			Code: []inspect.CodeValue{code("0", "a", "b", "c", "d"), code("2", "e")},
		},
		"no server runs": {},
		`set to "half", which only a newer version can read, by ann 3 h ago`: {
			Set: true, Value: "half", By: "ann", At: ago, Unknown: true,
		},
	} {
		s.Name = "max-running"
		if got := SettingOrigin(&s, noon); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFollowingIsDescribed(t *testing.T) {
	for want, s := range map[string]inspect.QueueSettings{
		"":                                    {},
		"its server follows":                  {Servers: 1, Following: 1},
		"all 3 servers follow":                {Servers: 3, Following: 3},
		"2 of 3 servers follow, but not blue": {Servers: 3, Following: 2, Behind: []string{"blue"}},
	} {
		if got := Following(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEffectsOnDeadLetters(t *testing.T) {
	settings := func(namesAndValues ...string) *core.Settings {
		s := &core.Settings{}
		for at := 0; at < len(namesAndValues); at += 2 {
			changed, err := s.Change([]core.SettingChange{{Name: namesAndValues[at], Value: namesAndValues[at+1]}}, "", 1)
			if err != nil {
				t.Fatal(err)
			}
			s = &changed
		}
		return s
	}
	none := settings()

	for _, tt := range []struct {
		before, after *core.Settings
		dead          int64
		want          string
	}{
		{none, settings("max-running", "3"), 5, ""},
		{none, settings("morgue-age", "0"), 5, ""},
		{settings("morgue-age", "30d"), settings("morgue-age", "30d", "max-lanes", "3"), 5, ""},
		{settings("morgue-age", "30d"), none, 5, ""},
		{none, settings("morgue-age", "30d"), 0,
			"Servers will remove those that last changed more than 30d ago. The queue has no dead letter now."},
		{none, settings("morgue-age", "30d"), 1234,
			"Servers will remove those that last changed more than 30d ago. " +
				"The queue has 1,234 dead letters, and the oldest last changed 40 d ago: " +
				"it goes first, about 10 min from now. Until then another change prevents it; what is removed is gone."},
		{settings("morgue-age", "60d"), settings("morgue-age", "50d"), 1,
			"Servers will remove those that last changed more than 50d ago. " +
				"The queue has 1 dead letter, and the oldest last changed 40 d ago: " +
				"it goes first, about 10 d from now. Until then another change prevents it; what is removed is gone."},
		{none, settings("morgue-count", "1000"), 1001,
			"Servers will remove the oldest ones beyond 1,000. " +
				"The queue has 1,001 dead letters, and the oldest last changed 40 d ago: " +
				"it goes first, about 10 min from now. Until then another change prevents it; what is removed is gone."},
		{none, settings("morgue-count", "1000", "morgue-age", "50d"), 1000,
			"Servers will remove those that last changed more than 50d ago, and the oldest ones beyond 1,000. " +
				"The queue has 1,000 dead letters, and the oldest last changed 40 d ago: " +
				"it goes first, about 10 d from now. Until then another change prevents it; what is removed is gone."},
		{none, settings("morgue-count", "1000"), 1000,
			"Servers will remove the oldest ones beyond 1,000. " +
				"The queue has 1,000 dead letters, and the oldest last changed 40 d ago. None is removed yet."},
	} {
		oldest := noon.Add(-40 * 24 * time.Hour)
		if got := MorgueEffect(tt.before, tt.after, tt.dead, oldest, noon); got != tt.want {
			t.Errorf("%+v to %+v with %d:\n%q, want\n%q", tt.before, tt.after, tt.dead, got, tt.want)
		}
	}
}
