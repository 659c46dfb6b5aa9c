package main

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
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

// filtered reports whether the command itself filters the list: stores can't filter by --before,
// --error and --tag.
func (l *listFlags) filtered() bool { return l.before != "" || l.entryFilter != (entryFilter{}) }

// filter returns the time of --before. It removes the limit of a filtered list from o, and else
// raises it by one, to find out whether the list is cut at its limit.
func (l *listFlags) filter(o *inspect.ListOptions) (before time.Time, err error) {
	if err := l.entryFilter.check(); err != nil {
		return before, err
	}
	if l.before != "" {
		before, err = parseTime("--before", l.before)
	}
	if o.Limit = oneMore(o.Limit); l.filtered() {
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

// oneMore returns the limit of a read that finds out whether a list is cut at its limit.
func oneMore(limit int) int {
	if limit <= 0 || limit == math.MaxInt {
		return limit
	}
	return limit + 1
}

// listLimited lists at most limit items, 0 means all, and states on standard error that there are
// more. After the limit it still reads items, for the error of a part that can't be reached.
func listLimited[T any](a *app, cols columns[T], items iter.Seq2[T, error], limit int, what string) error {
	shown := 0
	err := list(a, cols, func(yield func(T, error) bool) {
		for v, err := range items {
			if err == nil {
				if shown++; limit > 0 && shown > limit {
					continue
				}
			}
			if !yield(v, err) {
				return
			}
		}
	})
	if limit > 0 && shown > limit {
		_, _ = fmt.Fprintln(a.stderr, moreThan(limit, what))
	}
	return err
}

// moreThan states that a list is cut at its limit.
func moreThan(limit int, what string) string {
	return fmt.Sprintf("there are more than %s %s; --limit 0 lists all", figures.Exact(int64(limit)), what)
}

// listEntries lists the entries that match, at most as many as --limit allows, and states on
// standard error that there are more. A filtered list is not read on after its limit, since the next
// match may be far away.
func listEntries[T any](
	a *app, cols columns[T], l *listFlags, entries iter.Seq2[T, error], match func(*T) bool, what string,
) error {
	if !l.filtered() {
		return listLimited(a, cols, entries, l.o.Limit, what)
	}

	shown := 0
	err := list(a, cols, some(entries, func(v *T) bool {
		is := match(v)
		if is {
			shown++
		}
		return is
	}, l.o.Limit))
	if shown > 0 && shown == l.o.Limit {
		_, _ = fmt.Fprintf(a.stderr, "the list ends at its limit of %s %s, and more may match; --limit 0 lists all\n",
			figures.Exact(int64(shown)), what)
	}
	return err
}

// sayLarger states on standard error that a list is cut at the largest of its items.
func (a *app) sayLarger(shown, total int, what string) {
	if shown < total {
		_, _ = fmt.Fprintf(a.stderr, "the %s largest of %s %s are listed; --limit raises that number\n",
			figures.Exact(int64(shown)), figures.Exact(int64(total)), what)
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

// parseTime parses a time, or an age such as 24h or 7d.
func parseTime(flag, text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Now().Add(-time.Duration(n) * inspect.Day), nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %s %s; give a time such as 2026-01-02T15:04:05Z, or how long ago, "+
		"such as 90m or 7d", errUsage, flag, text)
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
