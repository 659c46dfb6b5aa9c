package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// limiterRow is a limiter of a queue, with the rate that it belongs to.
type limiterRow struct {
	inspect.LimiterState
	of *inspect.QueueRate
}

// limiterColumns have the rate in force, which is that of the whole queue, before the fields of a
// limiter.
func limiterColumns() columns[limiterRow] {
	fields := within(fieldColumns[inspect.LimiterState](), func(r *limiterRow) *inspect.LimiterState {
		return &r.LimiterState
	})
	return append(fields, columns[limiterRow]{
		{"rate", false, func(r *limiterRow) any {
			if r.Key != "" {
				return nil
			}
			return r.of.Rate
		}},
		{"set", true, func(r *limiterRow) any { return r.of.Set }},
		{"set_by", true, func(r *limiterRow) any { return r.of.SetBy }},
		{"set_at", true, func(r *limiterRow) any { return r.of.SetAt }},
		{"as_of", true, func(r *limiterRow) any { return r.of.Now }},
	}...)
}

func (a *app) rate() *cobra.Command {
	var limit int
	var key string
	var stop time.Duration
	var resume bool
	c := a.command("rate QUEUE", "Show the rate of a queue and its limiters, or stop and resume it",
		`skein queue rate mails --stop 10m --reason "OPS-12: the mail service is overloaded"`, cobra.ExactArgs(1), nil)
	c.Long = c.Short + ".\n" +
		"The rate bounds the starts of jobs over all servers: the code of the servers has it, or the setting rate.\n" +
		"The limiter furthest ahead comes first. next_slot is when the next start is allowed.\n" +
		"With --stop no job of the queue starts for a while, on any server; running jobs continue. A stop that lasts\n" +
		"longer already stays. --resume ends a stop, also one of a handler that returned SlowDown. No burst follows.\n" +
		"A queue without a rate can't be stopped so: pause it.\n" +
		"With --key only jobs of that key are meant, such as those of a tenant, by the RateBy of the code."

	f := c.Flags()
	f.IntVar(&limit, "limit", 100, "the largest number of limiters")
	f.DurationVar(&stop, "stop", 0, fmt.Sprintf("let no job start for this `TIME`, such as 10m; at most %v", core.MaxStop))
	f.StringVar(&key, "key", "", "stop or resume only jobs of this `KEY`")
	f.BoolVar(&resume, "resume", false, "end a stop")

	c.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case limit < 1 || limit > inspect.MaxLimiters:
			return fmt.Errorf("%w: --limit %d; use 1 to %d", errUsage, limit, inspect.MaxLimiters)
		case f.Changed("key") && (key == "" || !f.Changed("stop") && !resume):
			return fmt.Errorf("%w: --key %q; give a key, and --stop or --resume with it", errUsage, key)
		case f.Changed("stop") && resume:
			return fmt.Errorf("%w: --stop together with --resume; give one of them", errUsage)
		case f.Changed("stop") && (stop < time.Microsecond || stop > core.MaxStop):
			return fmt.Errorf("%w: --stop %v; use a time up to %v, or --resume to end a stop", errUsage, stop, core.MaxStop)
		}

		i, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		switch {
		case resume:
			return i.ResumeRate(cmd.Context(), args[0], key)
		case f.Changed("stop"):
			return i.StopRate(cmd.Context(), args[0], key, stop)
		}
		return a.showRate(cmd.Context(), i, args[0], limit)
	}
	return c
}

// showRate lists the limiters of a queue.
func (a *app) showRate(ctx context.Context, i *inspect.Inspector, queue string, limit int) error {
	of, err := i.Rate(ctx, queue, limit)
	if err != nil {
		return err
	}

	var rows []limiterRow
	for at := range of.Limiters {
		rows = append(rows, limiterRow{of.Limiters[at], &of})
	}
	cols := limiterColumns()
	if a.output == "table" || a.output == "wide" {
		cols = cols.with("key", func(r *limiterRow) any {
			if r.Key == "" {
				return "whole queue"
			}
			return r.Key
		})
	}
	return list(a, cols, all(rows, nil))
}
