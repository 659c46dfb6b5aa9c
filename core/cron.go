package core

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// cron is a cron expression: for each field its allowed values as bits.
type cron struct {
	text                         string
	minutes, hours, days, months uint64
	weekdays                     uint64 // bit 0 is Sunday
	anyDay, anyWeekday, eachHour bool
}

// cronField is the description of one of the five fields.
type cronField struct {
	name     string
	min, max int
	// names are names of values, from min on.
	names []string
}

func cronFields() [5]cronField {
	return [5]cronField{
		{name: "minute", max: 59},
		{name: "hour", max: 23},
		{name: "day of month", min: 1, max: 31},
		{name: "month", min: 1, max: 12, names: []string{
			"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
		}},
		{name: "day of week", max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// cronShorthand returns the expression that a name such as "@daily" stands for.
func cronShorthand(name string) (expression string, ok bool) {
	switch name {
	case "@yearly", "@annually":
		return "0 0 1 1 *", true
	case "@monthly":
		return "0 0 1 * *", true
	case "@weekly":
		return "0 0 * * 0", true
	case "@daily", "@midnight":
		return "0 0 * * *", true
	case "@hourly":
		return "0 * * * *", true
	}
	return "", false
}

// parseCron reads an expression of five fields, or a shorthand.
func parseCron(expression string) (*cron, error) {
	fields := strings.Fields(strings.ToLower(expression))
	if len(fields) == 1 && strings.HasPrefix(fields[0], "@") {
		known, ok := cronShorthand(fields[0])
		if !ok {
			return nil, fmt.Errorf(
				"%w: the shorthand %q; use @hourly, @daily, @weekly, @monthly, @yearly or five fields",
				ErrInvalidSchedule, fields[0],
			)
		}
		fields = strings.Fields(known)
	}
	if len(fields) != 5 {
		return nil, fmt.Errorf("%w: the cron expression %q has %d fields; "+
			"give minute, hour, day of month, month and day of week", ErrInvalidSchedule, expression, len(fields))
	}

	var sets [5]uint64
	var texts [5]string
	for i, f := range cronFields() {
		var err error
		if sets[i], texts[i], err = f.parse(fields[i]); err != nil {
			return nil, fmt.Errorf("%w: field %d, %s, of the cron expression %q: %w",
				ErrInvalidSchedule, i+1, f.name, expression, err)
		}
	}
	return &cron{
		text:       strings.Join(texts[:], " "),
		minutes:    sets[0],
		hours:      sets[1],
		days:       sets[2],
		months:     sets[3],
		weekdays:   sets[4]&^(1<<7) | sets[4]>>7&1, // 7 is Sunday too
		anyDay:     strings.HasPrefix(texts[2], "*"),
		anyWeekday: strings.HasPrefix(texts[4], "*"),
		eachHour:   strings.HasPrefix(texts[1], "*"),
	}, nil
}

// parse reads a list of items. It returns the values as bits, and the list with numbers for names.
func (f *cronField) parse(list string) (set uint64, text string, err error) {
	var items []string
	for position, item := range strings.Split(list, ",") {
		values, canonical, err := f.parseItem(item)
		if err != nil {
			return 0, "", fmt.Errorf("item %d, %q: %w", position+1, item, err)
		}
		set |= values
		items = append(items, canonical)
	}
	return set, strings.Join(items, ","), nil
}

// parseItem reads a value, a range or all values, each with an optional step.
func (f *cronField) parseItem(item string) (set uint64, text string, err error) {
	values, step, stepped := strings.Cut(item, "/")
	first, last, text := f.min, f.max, "*"
	if f.max == 7 {
		last = 6 // all days of the week, once
	}

	if values != "*" {
		low, high, ranged := strings.Cut(values, "-")
		if first, err = f.value(low); err != nil {
			return 0, "", err
		}
		text = strconv.Itoa(first)
		switch {
		case ranged:
			if last, err = f.value(high); err != nil {
				return 0, "", err
			}
			if f.max == 7 && last == 0 && first > 0 { // a range may end with Sunday
				last = 7
			}
			text += "-" + strconv.Itoa(last)
		case !stepped:
			last = first
		case first > last: // 7, behind the end of the week
			return 0, "", fmt.Errorf("the step from %d, which is the last day; write 0/%s to begin with Sunday, or %d for Sunday alone",
				first, step, first)
		}
	}

	if first > last {
		return 0, "", fmt.Errorf("the range ends before it begins; write it as two ranges, %d-%d,%d-%d",
			first, f.max, f.min, last)
	}

	by := 1
	if stepped {
		var ok bool
		if by, ok = cronNumber(step); !ok || by < 1 || by > f.max {
			return 0, "", fmt.Errorf("the step %q; give a number from 1 to %d", step, f.max)
		}
		text += "/" + strconv.Itoa(by)
	}

	for v := first; v <= last; v += by {
		set |= 1 << v
	}

	return set, text, nil
}

// value reads a number or a name.
func (f *cronField) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.min + i, nil
		}
	}

	if v, ok := cronNumber(text); ok && v >= f.min && v <= f.max {
		return v, nil
	}

	cure := fmt.Sprintf("give a number from %d to %d", f.min, f.max)
	if len(f.names) > 0 {
		cure += fmt.Sprintf(" or a name from %s to %s", f.names[0], f.names[len(f.names)-1])
	}
	if strings.ContainsAny(text, "lw#?") {
		cure += "; L, W, # and ? are not supported, let the handler decide on such days"
	}

	return 0, fmt.Errorf("the value %q; %s", text, cure)
}

// cronNumber reads a number of digits alone, without a sign.
func cronNumber(text string) (n int, ok bool) {
	unsigned, err := strconv.ParseUint(text, 10, 31)
	return int(unsigned), err == nil
}

// String returns the expression with numbers for names, and one space between fields.
func (c *cron) String() string { return c.text }

// possible reports whether there is a day on which the expression has ticks. Each day of the week
// comes with each day of the year, 29 February included, within some decades.
func (c *cron) possible() bool {
	if !c.anyDay && !c.anyWeekday {
		return true // a day of the week suffices
	}
	for months := c.months; months != 0; months &= months - 1 {
		longest := time.Date(2000, time.Month(bits.TrailingZeros64(months))+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if bits.TrailingZeros64(c.days) <= longest {
			return true
		}
	}
	return false
}

// matchesDay reports whether the expression has ticks on a day. If both the day of the month and
// the day of the week are restricted, one of them suffices, as in other implementations of cron.
func (c *cron) matchesDay(day time.Time) bool {
	inMonth := c.days>>day.Day()&1 == 1
	inWeek := c.weekdays>>day.Weekday()&1 == 1
	if c.months>>day.Month()&1 == 0 {
		return false
	}
	if c.anyDay || c.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// everyHour are the hours of an expression with ticks in every hour.
const everyHour = 1<<24 - 1

// nextIn returns the first tick of a period that is not before from. A clock time that the period
// has skipped at its start makes one tick, at that start. If whole hours are skipped, an expression
// with ticks in every hour has lost none in real time, and makes no such tick. A clock time that
// the period repeats makes another tick only if the expression has ticks in each hour or in steps
// of hours.
func (c *cron) nextIn(p *period, from Instant) (tick Instant, ok bool) {
	const hour = Instant(time.Hour / time.Microsecond)
	gap := p.offset - p.before
	if from <= p.start && gap > 0 && (c.hours != everyHour || gap%hour != 0) {
		if _, skipped := c.nextClock(p.start+p.before, p.start+p.offset); skipped {
			return p.start, true
		}
	}

	clock := max(from, p.start) + p.offset
	if !c.eachHour {
		clock = max(clock, p.start+p.before)
	}
	clock, ok = c.nextClock(clock, p.end+p.offset)
	return clock - p.offset, ok
}

// nextClock returns the first clock time that the expression names, from one clock time on and
// before another. Clock times are written as instants of UTC that show the same date and time.
func (c *cron) nextClock(from, before Instant) (clock Instant, ok bool) {
	const minute = Instant(time.Minute / time.Microsecond)
	if over := (from%minute + minute) % minute; over > 0 {
		from += minute - over
	}

	for from < before {
		at := time.UnixMicro(int64(from)).UTC()
		day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		if c.matchesDay(day) {
			if minutes, found := c.nextMinute(at.Hour()*60 + at.Minute()); found {
				clock = Instant(day.UnixMicro()) + Instant(minutes)*minute
				return clock, clock < before
			}
		}
		from = Instant(day.AddDate(0, 0, 1).UnixMicro())
	}
	return 0, false
}

// nextMinute returns the first minute of a day that the expression names, from one on.
func (c *cron) nextMinute(from int) (minute int, ok bool) {
	hour := from / 60
	if c.hours>>hour&1 == 1 {
		if remaining := c.minutes >> (from % 60); remaining != 0 {
			return from + bits.TrailingZeros64(remaining), true
		}
	}
	later := c.hours >> (hour + 1)
	if later == 0 {
		return 0, false
	}
	return (hour+1+bits.TrailingZeros64(later))*60 + bits.TrailingZeros64(c.minutes), true
}
