package specs

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
)

// Words returns the text of a spec as a short phrase, such as "each day at 23:00", "every 15
// minutes" or "weekdays at 06:00". The phrase has no time zone; [core.SpecZone] returns it. Words
// returns the cron expression for one without a short phrase, and any other text unchanged.
func Words(spec string) string {
	fields := strings.Fields(spec)
	switch {
	case len(fields) == 3 && fields[0] == "every":
		if every, err := time.ParseDuration(fields[1]); err == nil {
			return everyWords(every)
		}
	case len(fields) == 7 && fields[0] == "cron":
		c := cronWords{minute: fields[1], hour: fields[2], day: fields[3], month: fields[4], weekday: fields[5]}
		if phrase, ok := c.phrase(); ok {
			return phrase
		}
		return strings.Join(fields[1:6], " ")
	}
	return spec
}

// everyWords returns an interval in its largest whole unit.
func everyWords(every time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if every > 0 && every%unit.size == 0 {
			return eachWords(int(every/unit.size), unit.name)
		}
	}
	return "every " + every.String()
}

func eachWords(n int, unit string) string {
	if n == 1 {
		return "every " + unit
	}
	return fmt.Sprintf("every %d %ss", n, unit)
}

// cronWords are the fields of a cron expression, with numbers for names.
type cronWords struct{ minute, hour, day, month, weekday string }

// phrase returns the expression as a phrase. ok is false if it has none.
func (c *cronWords) phrase() (phrase string, ok bool) {
	days, ok := c.days()
	if !ok {
		return "", false
	}
	if times, ok := c.times(); ok {
		return days + " at " + times, true
	}
	steps, ok := c.steps()
	switch {
	case !ok:
		return "", false
	case days != eachDay:
		return days + ", " + steps, true
	}
	return steps, true
}

const eachDay = "each day"

// days returns on which days the expression has ticks.
func (c *cronWords) days() (string, bool) {
	switch {
	case c.month != "*":
		day, dayOK := number(c.day)
		month, monthOK := number(c.month)
		if !dayOK || !monthOK || c.weekday != "*" {
			return "", false
		}
		return fmt.Sprintf("each %d %s", day, time.Month(month)), true
	case c.day != "*":
		day, ok := number(c.day)
		if !ok || c.weekday != "*" {
			return "", false
		}
		return fmt.Sprintf("day %d of each month", day), true
	}

	switch c.weekday {
	case "*", "*/1", "0-6", "1-7", "0-7":
		return eachDay, true
	case "1-5":
		return "weekdays", true
	case "0,6", "6,0", "6,7", "6-7":
		return "weekends", true
	}
	numbers, ok := numbers(c.weekday)
	if !ok {
		return "", false
	}
	var names []string
	for _, n := range numbers {
		names = append(names, time.Weekday(n%7).String()+"s")
	}
	return listed(names), true
}

// mostTimes is the number of times of a day up to which a phrase names them.
const mostTimes = 4

// times returns the times of a day with ticks, if they are few.
func (c *cronWords) times() (string, bool) {
	minutes, minutesOK := numbers(c.minute)
	hours, hoursOK := numbers(c.hour)
	if !minutesOK || !hoursOK || len(minutes)*len(hours) > mostTimes {
		return "", false
	}

	var times []string
	for _, hour := range hours {
		for _, minute := range minutes {
			times = append(times, fmt.Sprintf("%02d:%02d", hour, minute))
		}
	}
	return listed(times), true
}

// steps returns the expression of ticks that repeat through the day. Steps that don't divide the
// hour or the day have no phrase, since the last one is shorter.
func (c *cronWords) steps() (string, bool) {
	minute, fixed := number(c.minute)
	minutes, stepped := step(c.minute, 60)
	hours, everyHours := step(c.hour, 24)
	switch {
	case !everyHours:
		return "", false
	case stepped && hours == 1:
		return eachWords(minutes, "minute"), true
	case fixed && minute == 0:
		return eachWords(hours, "hour"), true
	case fixed:
		return fmt.Sprintf("%s at minute %d", eachWords(hours, "hour"), minute), true
	}
	return "", false
}

// step returns n for */n, and 1 for *, if n divides the whole.
func step(field string, whole int) (n int, ok bool) {
	if field == "*" {
		return 1, true
	}
	text, ok := strings.CutPrefix(field, "*/")
	if !ok {
		return 0, false
	}
	n, ok = number(text)
	return n, ok && n > 0 && whole%n == 0
}

func number(field string) (n int, ok bool) {
	n, err := strconv.Atoi(field)
	return n, err == nil
}

// numbers returns a list of numbers without ranges and steps.
func numbers(field string) (list []int, ok bool) {
	for item := range strings.SplitSeq(field, ",") {
		n, ok := number(item)
		if !ok {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// listed joins words as a list: a, b and c.
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Cron returns the expression and the zone of a spec's text. ok is false for an interval, and for a
// text that no version up to this one has written.
func Cron(spec string) (expression, zone string, ok bool) {
	fields := strings.Fields(spec)
	if len(fields) != 7 || fields[0] != "cron" {
		return "", "", false
	}
	return strings.Join(fields[1:6], " "), fields[6], true
}

// Zone returns the time zone of a spec's text for people: UTC for an interval.
func Zone(spec string) string {
	if zone := core.SpecZone(spec); zone != "" {
		return zone
	}
	return "UTC"
}
