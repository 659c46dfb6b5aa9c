package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrInvalidSetting reports a setting of an unknown name, a value that the setting does not accept,
// or settings that could not be stored. Its text names what is accepted.
var ErrInvalidSetting = errors.New("invalid setting")

// The names of settings (docs/rules.md 11). [DescribedSettings] describes each.
const (
	SettingMaxRunning  = "max-running"
	SettingMaxLanes    = "max-lanes"
	SettingMorgueAge   = "morgue-age"
	SettingMorgueCount = "morgue-count"
	SettingRate        = "rate"
)

// Limits of settings.
const (
	// MaxSettings is the maximum number of settings of a queue.
	MaxSettings = 64
	// MaxSettingName is the maximum size of the name of a setting in bytes.
	MaxSettingName = 64
	// MaxSettingValue is the maximum size of the value of a setting in bytes.
	MaxSettingValue = 256
	// MaxSettingBy is the maximum size of Setting.By in bytes.
	MaxSettingBy = 256
	// MaxSettingsVersion is the largest Version of settings: all whole numbers up to it are exact as
	// a float64, in which some stores compare them.
	MaxSettingsVersion = 1 << 53
)

// Bounds of the values of settings.
const (
	maxRunningSetting = 1 << 20 // ports.MaxPermits
	maxLanesSetting   = 1 << 20
	minMorgueAge      = time.Minute
	maxMorgueDays     = 3650
	maxMorgueAge      = maxMorgueDays * day
	maxMorgueCount    = 1 << 53
	day               = 24 * time.Hour
)

// Setting is a setting of a queue that an operator has set while servers run (docs/rules.md 11).
type Setting struct {
	// Name is the name of the setting. Value is the canonical text of its value; see ParseSetting.
	Name, Value string
	// By is who has set the value, for people. At is when, by the store's clock.
	By string
	At Instant
}

// Settings are the settings of a queue that operators have set. A setting that is not among them is
// unset: the option in the code of each server applies. The zero value means that nothing was ever
// set.
type Settings struct {
	// Version counts the changes. 0 means that nothing was ever set.
	Version int64
	// Set are the settings in order of Name, each once. A Setting may have a name, or a value, that
	// only newer programs can read.
	Set []Setting
	// By is who has made the last change, for people: also one that only unset a setting. At is when,
	// by the store's clock.
	By string
	At Instant
	// Broken is true if the stored settings can't be read. Then Set is empty, By and At are zero, and
	// Version is 0 unless it can be read.
	Broken bool
}

// SettingChange sets or unsets one setting.
type SettingChange struct {
	// Name is the name of the setting. Value is its new value, as a text for ParseSetting.
	Name, Value string
	// Unset removes the setting. Value has no meaning then.
	Unset bool
}

// SettingKind describes a setting that this version knows.
type SettingKind struct {
	// Name is the name of the setting.
	Name string
	// About describes the setting to people, in one sentence without a full stop.
	About string
	// Unit is what a value counts or measures, such as "batches". Accepts describes the values that
	// the setting accepts.
	Unit, Accepts string

	parse func(text string) (canonical string, ok bool)
}

// DescribedSettings returns the settings that this version knows, in order of Name. It is the one
// place where a new setting is declared.
func DescribedSettings() []SettingKind {
	return []SettingKind{
		{
			Name:    SettingMaxLanes,
			About:   "The maximum number of lanes of each server that run batches of the queue at once",
			Unit:    "lanes",
			Accepts: fmt.Sprintf("a whole number from 1 to %d, or 0 for no limit", maxLanesSetting),
			parse:   wholeUpTo(maxLanesSetting),
		},
		{
			Name:    SettingMaxRunning,
			About:   "The maximum number of batches of the queue that run at once over all servers",
			Unit:    "batches",
			Accepts: fmt.Sprintf("a whole number from 1 to %d, or 0 for no limit", maxRunningSetting),
			parse:   wholeUpTo(maxRunningSetting),
		},
		{
			Name:  SettingMorgueAge,
			About: "The time after its last change when a dead letter of the queue is removed",
			Unit:  "duration",
			Accepts: fmt.Sprintf("a duration in whole seconds from 1m to %dd, such as 720h or 30d, "+
				"or 0 to keep dead letters for ever", maxMorgueDays),
			parse: parseMorgueAge,
		},
		{
			Name:    SettingMorgueCount,
			About:   "The maximum number of dead letters of the queue; the oldest others are removed",
			Unit:    "dead letters",
			Accepts: fmt.Sprintf("a whole number from 1 to %d, or 0 for no limit", int64(maxMorgueCount)),
			parse:   wholeUpTo(maxMorgueCount),
		},
		{
			Name:    SettingRate,
			About:   "The maximum rate at which batches of the queue start over all servers",
			Unit:    "batches",
			Accepts: `a rate such as 10/1m, 50/s or 100/day+20 with a burst of 20, or "none" for no limit`,
			parse:   parseRateSetting,
		},
	}
}

// parseRateSetting parses a [Rate]. 0 is no limit, as for other settings.
func parseRateSetting(text string) (string, bool) {
	if text == "0" {
		text = noRate
	}
	r, err := ParseRate(text)
	return r.String(), err == nil
}

// settingKind returns the description of a setting. ok is false if this version does not know it.
func settingKind(name string) (kind SettingKind, ok bool) {
	kinds := DescribedSettings()
	at := slices.IndexFunc(kinds, func(k SettingKind) bool { return k.Name == name })
	if at < 0 {
		return SettingKind{}, false
	}
	return kinds[at], true
}

// ParseSetting returns the canonical text of a value of a setting. Equal values have equal canonical
// texts, which ParseSetting returns unchanged. It returns [ErrInvalidSetting] for a name that this
// version does not know and for a value that the setting does not accept.
func ParseSetting(name, text string) (canonical string, err error) {
	kind, known := settingKind(name)
	if !known {
		var names []string
		for _, k := range DescribedSettings() {
			names = append(names, k.Name)
		}
		return "", fmt.Errorf("%w: this version does not know the name %q; use one of %s",
			ErrInvalidSetting, CutText(Text(name), MaxSettingName), strings.Join(names, ", "))
	}

	canonical, ok := kind.parse(text)
	if !ok {
		return "", fmt.Errorf("%w: %s can't be %q; use %s",
			ErrInvalidSetting, name, CutText(Text(text), MaxSettingValue), kind.Accepts)
	}
	return canonical, nil
}

// wholeUpTo returns the parser of whole numbers from 0 to most.
func wholeUpTo(most int64) func(string) (string, bool) {
	return func(text string) (string, bool) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > most || text[0] == '+' {
			return "", false
		}
		return strconv.FormatInt(n, 10), true
	}
}

// parseMorgueAge parses a duration of package time, or a whole number of days.
func parseMorgueAge(text string) (string, bool) {
	var age time.Duration
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		whole, ok := wholeUpTo(maxMorgueDays)(days)
		if !ok {
			return "", false
		}
		n, _ := strconv.Atoi(whole)
		age = time.Duration(n) * day
	} else {
		var err error
		if age, err = time.ParseDuration(text); err != nil {
			return "", false
		}
	}

	if age != 0 && (age < minMorgueAge || age > maxMorgueAge || age%time.Second != 0) {
		return "", false
	}
	return age.String(), true
}

// Change returns the settings after some changes by somebody, at a time of the store's clock. They
// have the next Version, and the By and At of the change. By is truncated to [MaxSettingBy] bytes.
//
// Unsetting a setting that is not set, and setting a setting to the value that it has, changes
// nothing of it: its By and At stay. If nothing changes, the settings are returned as they are, with
// the same Version, By and At. Settings of names that this version does not know are kept, and may be unset,
// but not set. Broken settings are replaced by what the changes set.
//
// Change returns [ErrInvalidSetting] for a setting that is changed twice, for a value that
// ParseSetting refuses, for more than [MaxSettings] settings, and at [MaxSettingsVersion]. s is not
// changed, and shares no memory with the result.
func (s Settings) Change(changes []SettingChange, by string, at Instant) (Settings, error) {
	changed := s.Clone()
	changed.Broken = false
	by = CutText(Text(by), MaxSettingBy)
	different := s.Broken && len(changes) > 0

	named := make(map[string]bool)
	for _, c := range changes {
		if named[c.Name] {
			return Settings{}, fmt.Errorf("%w: %s is changed twice at once; name it once", ErrInvalidSetting, c.Name)
		}
		named[c.Name] = true

		value := ""
		if !c.Unset {
			var err error
			if value, err = ParseSetting(c.Name, c.Value); err != nil {
				return Settings{}, err
			}
		}

		i, set := changed.search(c.Name)
		switch {
		case c.Unset && !set, !c.Unset && set && changed.Set[i].Value == value:
			continue
		case c.Unset:
			changed.Set = slices.Delete(changed.Set, i, i+1)
		case set:
			changed.Set[i] = Setting{Name: c.Name, Value: value, By: by, At: at}
		default:
			changed.Set = slices.Insert(changed.Set, i, Setting{Name: c.Name, Value: value, By: by, At: at})
		}
		different = true
	}

	if !different {
		return s.Clone(), nil
	}
	changed.Version++
	changed.By, changed.At = by, at
	if err := changed.Validate(); err != nil {
		return Settings{}, err
	}
	return changed.Clone(), nil
}

// search returns the place of a setting in Set, and whether it is set.
func (s *Settings) search(name string) (at int, set bool) {
	return slices.BinarySearchFunc(s.Set, name, func(e Setting, name string) int {
		return strings.Compare(e.Name, name)
	})
}

// Validate returns [ErrInvalidSetting] for settings that a store can't keep: a Version that is not
// from 1 to [MaxSettingsVersion], Broken settings, more than [MaxSettings] settings, names that are
// empty or not in order, a name, a value or a By that is too long or not a [Text], and a time that
// is no [Instant]. It accepts names and values that this version does not know.
func (s Settings) Validate() error {
	switch {
	case s.Broken:
		return fmt.Errorf("%w: broken settings can't be stored; change them first", ErrInvalidSetting)
	case s.Version < 1 || s.Version > MaxSettingsVersion:
		return fmt.Errorf("%w: the version is %d; the first one is 1 and the last one is %d",
			ErrInvalidSetting, s.Version, int64(MaxSettingsVersion))
	case len(s.Set) > MaxSettings:
		return fmt.Errorf("%w: a queue can have %d settings, not %d; unset some", ErrInvalidSetting, MaxSettings, len(s.Set))
	}

	if !fitsSetting(s.By, MaxSettingBy) {
		return fmt.Errorf("%w: the name of who made the change has more than %d bytes, is not UTF-8 or has NUL; "+
			"shorten or encode it", ErrInvalidSetting, MaxSettingBy)
	}
	if s.At < 0 || s.At > MaxInstant {
		return fmt.Errorf("%w: the change was made at %d; use an instant from 0 to %d", ErrInvalidSetting, s.At, MaxInstant)
	}

	before := ""
	for _, e := range s.Set {
		for _, part := range []struct {
			what, text string
			most       int
		}{{"name", e.Name, MaxSettingName}, {"value", e.Value, MaxSettingValue}, {"By", e.By, MaxSettingBy}} {
			if !fitsSetting(part.text, part.most) {
				return fmt.Errorf("%w: the %s of %q has more than %d bytes, is not UTF-8 or has NUL; shorten or encode it",
					ErrInvalidSetting, part.what, CutText(Text(e.Name), MaxSettingName), part.most)
			}
		}
		if e.Name <= before {
			return fmt.Errorf("%w: %q follows %q; names must be in order, each once and none empty",
				ErrInvalidSetting, e.Name, before)
		}
		if e.At < 0 || e.At > MaxInstant {
			return fmt.Errorf("%w: %s was set at %d; use an instant from 0 to %d",
				ErrInvalidSetting, e.Name, e.At, MaxInstant)
		}
		before = e.Name
	}
	return nil
}

// fitsSetting reports whether a text can be a part of stored settings.
func fitsSetting(text string, most int) bool { return len(text) <= most && Text(text) == text }

// Clone returns settings that share no memory with s. Its Set is nil if it is empty.
func (s Settings) Clone() Settings {
	s.Set = append([]Setting(nil), s.Set...)
	return s
}

// Equal reports whether both settings have the same Version, By and At, the same settings with the
// same By and At, and are both Broken or both not.
func (s Settings) Equal(other Settings) bool {
	return s.Version == other.Version && s.By == other.By && s.At == other.At && s.Broken == other.Broken &&
		slices.Equal(s.Set, other.Set)
}

// Find returns a setting. ok is false if it is unset.
func (s Settings) Find(name string) (setting Setting, ok bool) {
	at, ok := s.search(name)
	if !ok {
		return Setting{}, false
	}
	return s.Set[at], true
}

// MaxRunning returns the maximum number of batches of the queue that may run at once over all
// servers. 0 means no limit. set is false if the setting is unset, or has a value that this version
// can't read.
func (s Settings) MaxRunning() (n int, set bool) {
	whole, set := s.whole(SettingMaxRunning)
	return int(whole), set
}

// MaxLanes returns the maximum number of lanes of a server that may run batches of the queue at
// once. 0 means no limit. set is false if the setting is unset, or has a value that this version
// can't read.
func (s Settings) MaxLanes() (n int, set bool) {
	whole, set := s.whole(SettingMaxLanes)
	return int(whole), set
}

// MorgueAge returns the time after which dead letters of the queue are removed. 0 means never. set
// is false if the setting is unset, or has a value that this version can't read.
func (s Settings) MorgueAge() (age time.Duration, set bool) {
	value, set := s.value(SettingMorgueAge)
	if !set {
		return 0, false
	}
	age, err := time.ParseDuration(value)
	return age, err == nil
}

// MorgueCount returns the maximum number of dead letters of the queue. 0 means no limit. set is
// false if the setting is unset, or has a value that this version can't read.
func (s Settings) MorgueCount() (n int64, set bool) { return s.whole(SettingMorgueCount) }

// Rate returns the maximum rate at which batches of the queue start over all servers. The zero Rate
// means no limit. set is false if the setting is unset, or has a value that this version can't read.
func (s Settings) Rate() (r Rate, set bool) {
	value, set := s.value(SettingRate)
	if !set {
		return Rate{}, false
	}
	r, err := ParseRate(value)
	return r, err == nil
}

// value returns the canonical value of a setting. ok is false if the setting is unset, or has a
// value that this version can't read.
func (s Settings) value(name string) (canonical string, ok bool) {
	setting, ok := s.Find(name)
	if !ok {
		return "", false
	}
	canonical, err := ParseSetting(name, setting.Value)
	return canonical, err == nil
}

// whole is value for a setting that is a whole number.
func (s Settings) whole(name string) (n int64, ok bool) {
	value, ok := s.value(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}
