package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// checkPatience is how long check waits for the store if --timeout is not given.
const checkPatience = 2 * time.Second

func (a *app) checkCommand() *cobra.Command {
	return a.command(
		"check",
		"Check for probes that the store answers and accepts pushes; waits 2s unless --timeout is given",
		"skein check --timeout 1s",
		cobra.NoArgs,
		func(ctx context.Context, i *inspect.Inspector, _ []string) error {
			if a.timeout == 0 {
				brief, stop := context.WithTimeout(ctx, checkPatience)
				defer stop()
				ctx = brief
			}

			s := lookAtStore(ctx, i)
			if err := list(a, checkColumns, all(s.rows(), nil)); err != nil {
				return err
			}

			err := s.verdict()
			if a.timeout == 0 && err != nil && context.Cause(ctx) == context.DeadlineExceeded &&
				!answered(s.checks) && !errors.Is(err, errFound) {
				return fmt.Errorf("%w: no answer within %v: %w", errAway, checkPatience, err)
			}
			return err // an error of --timeout names --timeout itself
		},
	)
}

// storeState is the result of check.
type storeState struct {
	// unusable is why the store can't be used, or has not reported that it can.
	unusable error
	checks   []inspect.Check
	leases   inspect.Check
	identity inspect.Check
}

// lookAtStore makes all calls concurrently, so that a call that hangs does not delay the others.
func lookAtStore(ctx context.Context, i *inspect.Inspector) (s storeState) {
	var looks sync.WaitGroup
	looks.Go(func() { s.unusable = i.Ping(ctx) })
	// If the checks can't be made at all, the error of the other call explains why the store can't be
	// used.
	looks.Go(func() { s.checks, _ = i.Checks(ctx) })
	looks.Go(func() { s.leases = lookAtLeases(ctx, i) })
	looks.Go(func() { s.identity = lookAtIdentity(ctx, i) })
	looks.Wait()
	return s
}

// lookAtIdentity returns the row with the id of the store.
func lookAtIdentity(ctx context.Context, i *inspect.Inspector) inspect.Check {
	row := inspect.Check{Name: "store_id"}
	id, err := i.StoreID(ctx)
	switch {
	case err != nil:
		row.Status, row.Value, row.Advice = inspect.CheckUnknown, err.Error(), "see the other rows"
	case id == "":
		row.Value = "none: it is drawn when a queue is declared"
	default:
		row.Value = id
	}
	return row
}

// lookAtLeases counts the shards that have an owner, in the queues that a server serves.
func lookAtLeases(ctx context.Context, i *inspect.Inspector) inspect.Check {
	row := inspect.Check{Name: "leases"}
	// A server declares its queues before it announces them, so those of the servers that are read
	// first are in the statistics.
	nodes, failed := i.Nodes(ctx)
	stats, err := i.Stats(ctx)
	var some *inspect.PartialError
	if errors.As(err, &some) {
		return awayRow(some.Unreached)
	}
	if err = cmp.Or(err, failed); err == nil {
		return leasesRow(linesOf(stats, nodes, true, nil), unlisted(stats, nodes))
	}
	row.Status, row.Value, row.Advice = inspect.CheckUnknown, err.Error(), "see the other rows"
	return row
}

// awayRow returns the row for shards that can't be reached: no server works them, and pushes to
// them fail.
func awayRow(shards []core.Shard) inspect.Check {
	names := make([]string, min(len(shards), shardsNamed))
	for i := range names {
		names[i] = shards[i].String()
	}
	if more := len(shards) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return inspect.Check{
		Name: "leases", Status: inspect.CheckFail, Refuses: true,
		Value:  fmt.Sprintf("shards that don't answer: %s", strings.Join(names, ", ")),
		Advice: "repair the server that has them; if all servers answer, see the row records",
	}
}

// shardsNamed is the largest number of shards that check names.
const shardsNamed = 5

// unlisted returns the queues that servers serve although the store does not list them.
func unlisted(stats []inspect.QueueStats, nodes []inspect.Node) []string {
	var names []string
	for _, n := range nodes {
		if n.State == inspect.NodeAlive {
			names = append(names, n.Queues...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return slices.ContainsFunc(stats, func(s inspect.QueueStats) bool { return s.Queue.Name == name })
	})
}

// leasesRow returns the row for the lines of all queues, and for the queues that are served but not
// listed.
func leasesRow(lines []statLine, unlisted []string) inspect.Check {
	row := inspect.Check{Name: "leases", Value: "no server runs"}
	shards, unowned := 0, 0
	var bare []string
	for _, line := range lines {
		if line.servers == 0 {
			continue
		}
		shards += line.Queue.Shards
		if unowned += line.unowned; line.unowned > 0 {
			bare = append(bare, line.Queue.Name)
		}
	}

	if shards > 0 {
		row.Value = fmt.Sprintf("%d of %d shards have an owner", shards-unowned, shards)
	}

	if len(unlisted) > 0 {
		if shards == 0 {
			row.Value = "servers run"
		}
		row.Status = inspect.CheckWarn
		row.Value += "; queues that they serve but the store does not list: " + strings.Join(unlisted, ", ")
		row.Advice = "see the row records; if it is ok, the queue was forgotten: " +
			"stop its servers, or let them declare it again"
	}

	if unowned > 0 {
		slices.Sort(bare)
		row.Status = inspect.CheckWarn
		row.Value += "; without: " + strings.Join(bare, ", ")
		row.Advice = "wait for a LeaseTTL, 10s by default; if it lasts, " +
			"see docs/operations/runbooks.md, SkeinShardsUnowned"
	}

	return row
}

// rows returns the rows of check, worst first: whether the store can be used, the checks of doctor,
// the leases, and the id of the store.
func (s *storeState) rows() []inspect.Check {
	usable := inspect.Check{Name: "usable", Value: "its format, its settings and the user's rights fit"}
	if s.unusable != nil {
		usable.Status, usable.Value, usable.Advice = inspect.CheckUnknown, s.unusable.Error(), "see the other rows"
		if s.refused() {
			usable.Status, usable.Advice, usable.Refuses = inspect.CheckFail, "follow the error's advice", true
		}
	}
	rows := slices.Concat([]inspect.Check{usable}, s.checks, []inspect.Check{s.leases, s.identity})
	worstFirst(rows)
	return rows
}

// refused reports whether the store has reported that it can't be used as it is.
func (s *storeState) refused() bool {
	return s.unusable != nil && ports.FailureOf(s.unusable) == ports.FailureRefused
}

// verdict returns nil if all shards accept pushes. It returns errFound, with a line for each
// reason, if the store answers and refuses pushes to all shards or to some. Otherwise it returns
// the error why the store can't be used.
func (s *storeState) verdict() error {
	if s.unusable != nil && !s.refused() && !answered(s.checks) {
		return s.unusable
	}

	why := []error{}
	for _, c := range s.rows() {
		switch {
		case !c.Refuses:
		case c.Name == "usable":
			why = append(why, s.unusable)
		default:
			why = append(why, fmt.Errorf("%s: %s; %s", strings.TrimSpace(c.Name+" "+c.Server), c.Value, c.Advice))
		}
	}

	if len(why) == 0 {
		return s.unusable
	}
	return fmt.Errorf("%w: pushes are refused, all or those to some shards:\n%w", errFound, errors.Join(why...))
}
