package main

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/skeinq/skein/inspect"
)

// orders are the values of --sort, named as in the HTTP API.
var orders = map[string]inspect.SortBy{
	"time": inspect.ByTime, "id": inspect.ByID,
	"retrying": inspect.RetryingByTime, "retrying_id": inspect.RetryingByID, "retries": inspect.RetryingByCount,
}

// listFlags are the common flags of a queue's lists.
type listFlags struct {
	sort, after, from string
	entryFilter
	before string
	o      inspect.ListOptions
}

func (l *listFlags) add(f *pflag.FlagSet) {
	f.StringVar(&l.after, "after", "",
		"begin after the row with this `CURSOR`, which -o wide and json show; --from is then ignored")
	f.StringVar(&l.from, "from", "",
		"begin here, inclusive: a time or an age such as 30m, an id, or a number of retries, by the order of the list")
	l.entryFilter.add(f, "")
	f.StringVar(&l.before, "before", "",
		"only jobs first pushed, or dead letters last changed, before this `TIME`; an age such as 24h is a TIME too")
	f.BoolVar(&l.o.Descending, "desc", false, "list backwards")
	f.IntVar(&l.o.Limit, "limit", 100, "the largest number of rows; 0 is no limit")
	f.IntSliceVar(&l.o.Shards, "shard", nil, "the index of a shard to list; may be repeated; all without it")
	f.IntVar(&l.o.Payloads, "payloads", 0,
		"the largest number of payloads to show of each row, lowest score first, in -o wide and json")
}

// options returns the options that the flags set.
func (l *listFlags) options() (o inspect.ListOptions, err error) {
	o = l.o
	var known bool
	if o.SortBy, known = orders[l.sort]; !known && l.sort != "" {
		return o, fmt.Errorf("%w: --sort %s; see --help for the orders", errUsage, l.sort)
	}
	if o.Prefix != "" && l.sort == "" {
		o.SortBy = inspect.ByID
	}

	if o.After, err = inspect.ParseCursor(l.after); err != nil || l.from == "" {
		return o, err
	}

	switch o.SortBy {
	case inspect.ByID, inspect.RetryingByID:
		o.FromID = l.from
	case inspect.RetryingByCount:
		if o.FromRetries, err = strconv.Atoi(l.from); err != nil {
			return o, fmt.Errorf("%w: --from %s; a list by retries begins at a number", errUsage, l.from)
		}
	default:
		o.FromTime, err = parseTime("--from", l.from)
	}
	return o, err
}

// filter returns the time of --before. Stores can't filter by --before, --error and --tag. With
// these flags the command itself filters the list, so filter removes the limit from o.
func (l *listFlags) filter(o *inspect.ListOptions) (before time.Time, err error) {
	if err := l.entryFilter.check(); err != nil {
		return before, err
	}
	if l.before != "" {
		before, err = parseTime("--before", l.before)
	}
	if l.before != "" || l.entryFilter != (entryFilter{}) {
		o.Limit = 0
	}
	return before, err
}

// some yields the items that match, at most limit; 0 is no limit.
func some[T any](items iter.Seq2[T, error], match func(*T) bool, limit int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		shown := 0
		for v, err := range items {
			if err == nil && !match(&v) {
				continue
			}
			if !yield(v, err) {
				return
			}
			if shown++; shown == limit {
				return
			}
		}
	}
}

// orElse yields items, and err if there is none.
func orElse[T any](items iter.Seq2[T, error], err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		empty := true
		for v, failed := range items {
			if empty = false; !yield(v, failed) {
				return
			}
		}
		if empty {
			var none T
			yield(none, err)
		}
	}
}

// parseTime parses a time, or an age such as 24h.
func parseTime(flag, text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%w: %s %s; give a time such as 2026-01-02T15:04:05Z, or how long ago, "+
		"such as 90m", errUsage, flag, text)
}

// parseTimeOrDate parses a time, an age, or a date, which is its midnight in the time zone with
// this name.
func parseTimeOrDate(flag, text, zone string) (time.Time, error) {
	date, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err := parseTime(flag, text)
		if err != nil {
			err = fmt.Errorf("%w, or a date such as 2026-01-02", err)
		}
		return t, err
	}

	in, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: %s %s is a date in the zone %s, which can't be loaded: %w; give a time",
			errUsage, flag, text, zone, err)
	}
	return time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, in), nil
}
