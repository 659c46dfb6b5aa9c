package service

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// SettingText returns a value of a setting as people type it, such as 30d for 720h0m0s.
func SettingText(name, value string) string {
	switch name {
	case core.SettingMorgueAge:
		age, err := time.ParseDuration(value)
		switch day := 24 * time.Hour; {
		case err != nil:
			return value
		case age == 0:
			return "0"
		case age%day == 0:
			return strconv.FormatInt(int64(age/day), 10) + "d"
		}
		return shortDuration(age)
	case core.SettingRate:
		rate, err := core.ParseRate(value)
		if err != nil || rate == (core.Rate{}) {
			return value
		}
		text := strconv.Itoa(rate.Count) + "/" + shortDuration(rate.Per)
		if rate.Burst > 0 {
			text += "+" + strconv.Itoa(rate.Burst)
		}
		return text
	}
	return value
}

// shortDuration writes a duration without the units that are 0.
func shortDuration(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// SettingValue returns a value of a setting for people to read: 0 is "no limit", or "for ever".
func SettingValue(name, value string) string {
	switch text := SettingText(name, value); {
	case text != "0" && (name != core.SettingRate || text != "none"):
		return text
	case name == core.SettingMorgueAge:
		return "for ever"
	}
	return "no limit"
}

// InForce returns the value of a setting that applies, for people to read. It is "unknown" if that is
// not known.
func InForce(s *inspect.SettingState) string {
	if s.InForce == "" {
		return "unknown"
	}
	return SettingValue(s.Name, s.InForce)
}

// SettingOrigin describes where the value of a setting is from, such as "set by ann 3 h ago; code has
// 50".
func SettingOrigin(s *inspect.SettingState, now time.Time) string {
	var parts []string
	if s.Set {
		value := ""
		if s.Unknown {
			value = fmt.Sprintf(" to %q, which only a newer version can read,", s.Value)
		}
		parts = append(parts, "set"+value+" by "+Changed(s.By, s.At, now))
	}

	switch {
	case len(s.Code) > 1:
		var each []string
		for _, c := range s.Code {
			each = append(each, SettingValue(s.Name, c.Value)+" on "+someServers(c.Servers))
		}
		parts = append(parts, "code differs: "+strings.Join(each, ", "))
	case len(s.Code) == 1 && s.Set:
		parts = append(parts, "code has "+SettingValue(s.Name, s.Code[0].Value))
	case len(s.Code) == 1:
		parts = append(parts, "code")
	case !s.Set:
		parts = append(parts, "no server runs")
	}
	return strings.Join(parts, "; ")
}

// Changed describes who changed something and when, such as "ann 3 h ago".
func Changed(by string, at, now time.Time) string {
	if at.IsZero() {
		return cmp.Or(by, "somebody without a name")
	}
	return cmp.Or(by, "somebody without a name") + " " + figures.Rough(max(0, now.Sub(at)).Round(time.Second)) + " ago"
}

// someServers names at most three servers.
func someServers(names []string) string {
	const most = 3
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Following describes how many servers follow the settings of a queue, such as "2 of 3 servers
// follow, but not green". It is empty if no server runs.
func Following(s *inspect.QueueSettings) string {
	switch {
	case s.Servers == 0:
		return ""
	case s.Servers == 1 && s.Following == 1:
		return "its server follows"
	case s.Following == s.Servers:
		return fmt.Sprintf("all %d servers follow", s.Servers)
	}
	return fmt.Sprintf("%d of %d servers follow, but not %s", s.Following, s.Servers, someServers(s.Behind))
}

// MorgueEffect describes what a change of settings does to the dead letters of a queue: how many there
// are, of which the oldest changed last at the given time, which of them go first and when. It is
// empty if the change sets no bound of the morgue.
func MorgueEffect(before, after *core.Settings, dead int64, oldest, now time.Time) string {
	age, ageSet := after.MorgueAge()
	count, countSet := after.MorgueCount()
	wasAge, wasAgeSet := before.MorgueAge()
	wasCount, wasCountSet := before.MorgueCount()
	aged, counted := ageSet && age > 0, countSet && count > 0
	if !aged && !counted || ageSet == wasAgeSet && age == wasAge && countSet == wasCountSet && count == wasCount {
		return ""
	}

	var rules []string
	if aged {
		rules = append(rules, "those that last changed more than "+SettingText(core.SettingMorgueAge, age.String())+" ago")
	}
	if counted {
		rules = append(rules, "the oldest ones beyond "+figures.Exact(count))
	}
	text := "Servers will remove " + strings.Join(rules, ", and ") + ". "
	if dead == 0 {
		return text + "The queue has no dead letter now."
	}

	has := figures.Exact(dead) + " dead letters"
	if dead == 1 {
		has = "1 dead letter"
	}
	text += fmt.Sprintf("The queue has %s, and the oldest last changed %s ago", has,
		figures.Rough(max(0, now.Sub(oldest)).Round(time.Second)))

	first := oldest.Add(age)
	if counted && dead > count || aged && first.Before(now) {
		first = now
	}
	first = first.Add(max(0, now.Add(core.RetentionGrace).Sub(first)))
	if !aged && dead <= count {
		return text + ". None is removed yet."
	}
	return text + fmt.Sprintf(": it goes first, about %s from now. Until then another change prevents it; "+
		"what is removed is gone.", figures.Rough(first.Sub(now).Round(time.Second)))
}
