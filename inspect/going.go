package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// maxSamples is the maximum number of jobs or dead letters that a DryRun returns.
const maxSamples = 10

// going is the state of an action on all entries of a kind: where it began, which entries it
// applies to, how far it is, and its rate.
type going struct {
	o BulkOptions
	// at is the content of the next Checkpoint. keeps is true if the action makes Checkpoints.
	at    standing
	keeps bool
	// next is the first shard to visit, and from is the position in it to begin at.
	next int
	from ports.Cursor
	// hole is the index of the first shard that could not be reached, or below 0 if there is no
	// such shard. No Checkpoint is behind it.
	hole int
	// missed are the shards that could not be reached, without those that are finished.
	missed []core.Shard
	// taken is the number of entries that this call has handled, for Limit.
	taken int
	// due is when Rate allows the next step, and began is when the last step began.
	due, began time.Time
	// before and earlier are the Done and Handled of earlier calls. stopped is set if Stop has
	// ended the action.
	before, earlier int
	stopped         bool
	// last is the Checkpoint after the last step. samples or jobs are the first entries that a
	// DryRun would handle.
	last    Checkpoint
	samples []DeadLetter
	jobs    []QueuedJob
}

// onAll makes an action on all entries of a kind. keeps is true if it can be continued.
func (o *BulkOptions) onAll(verb, queue string, filtered, keeps bool) *action {
	a := &action{verb: verb, report: o.Progress, going: &going{o: *o, hole: -1}}
	a.invalid = a.going.open(a, queue, filtered, keeps)
	return a
}

func (g *going) open(a *action, queue string, filtered, keeps bool) error {
	o := &g.o
	if o.Limit < 0 || o.Rate < 0 {
		return fmt.Errorf("%w: Limit %d, Rate %d; neither may be negative, 0 means no limit", ErrInvalidOptions, o.Limit, o.Rate)
	}
	if o.Group != "" && o.Prefix != "" {
		return fmt.Errorf("%w: Group %q beside Prefix %q; give only one of them", ErrInvalidOptions, o.Group, o.Prefix)
	}
	if err := checkGroup(o.Group); err != nil {
		return err
	}
	g.keeps = keeps && !o.DryRun && (!filtered || o.Filter != "")
	g.at = standing{Version: checkpointVersion, Action: a.verb, Queue: queue, Prefix: o.Prefix, Group: o.Group,
		Part: o.Prefix != "" || o.Group != "" || !o.Before.IsZero()}
	if filtered {
		g.at.Filter = digest(o.Filter)
	}
	if o.Continue == "" {
		return nil
	}
	if !g.keeps {
		return fmt.Errorf("%w: %s can't use Continue: an edit and a DryRun have no checkpoints, and an action with a match has them only with a Filter", ErrInvalidOptions, a.verb)
	}
	was, err := parseCheckpoint(o.Continue)
	if err != nil {
		return err
	}
	if err := was.sameAction(&g.at); err != nil {
		return err
	}
	if !o.Before.IsZero() && core.InstantOf(o.Before) < was.Before { // the first call's may have been in the future
		return fmt.Errorf("%w: Before differs from that of the action; omit it to continue", ErrInvalidCheckpoint)
	}
	g.at, g.next, g.from, g.last = was, was.Shard, was.cursor(), o.Continue
	g.before, g.earlier, a.met = was.Done, was.Handled, was.Met
	a.progress = Progress{Done: was.Done, Total: was.Total, Handled: was.Handled}
	return nil
}

// begin begins the action with the queue's present state. It returns an error if the queue was
// resharded since the Checkpoint.
func (g *going) begin(stats *ports.QueueStats) error {
	shards := stats.Queue.Shards
	if g.at.Shards != 0 { // continued
		if g.at.Shards != shards {
			return fmt.Errorf("%w: the queue had %d shards and now has %d; start the action again with Before",
				ErrInvalidCheckpoint, g.at.Shards, shards)
		}
	} else {
		g.at.Shards, g.at.Before = shards, endOf(stats.Now)
		if !g.o.Before.IsZero() {
			g.at.Before = min(g.at.Before, core.InstantOf(g.o.Before))
		}
	}
	for _, shard := range stats.Unreached {
		if shard.Index < g.next { // it is finished
			continue
		}
		g.missed = append(g.missed, shard)
		if g.hole < 0 || shard.Index < g.hole {
			g.hole = shard.Index
		}
	}
	return nil
}

func (g *going) continued() bool { return g.o.Continue != "" }

// room returns the maximum number of entries that the next step may handle, at most n. 0 means that
// Limit or Stop ends the action.
func (g *going) room(n int) int {
	if g.stopped {
		return 0
	}
	if g.o.Rate > 0 {
		n, g.began = min(n, g.o.Rate), time.Now()
	}
	if g.o.Limit > 0 {
		n = min(n, g.o.Limit-g.taken)
	}
	return n
}

// step notes that a step has handled n entries and that all entries before a position are dealt
// with. Then it waits as Rate demands.
func (g *going) step(ctx context.Context, a *action, n, shard int, from ports.Cursor) error {
	g.taken += n
	if err := g.note(a, shard, from); err != nil {
		return err
	}
	g.stopped = g.o.Stop != nil && g.o.Stop(a.progress.Done-g.before)
	if g.o.Rate == 0 || n == 0 || g.stopped {
		return nil
	}
	if g.due.Before(g.began) { // a step that took too long is not made up for
		g.due = g.began
	}
	g.due = g.due.Add(time.Duration(float64(n) / float64(g.o.Rate) * float64(time.Second)))
	if wait := time.Until(g.due); wait > 0 {
		return pause(ctx, wait)
	}
	return nil
}

// note makes the Checkpoint of a position. Behind the last shard it makes none, since the action is
// finished there.
func (g *going) note(a *action, shard int, from ports.Cursor) error {
	if g.hole >= 0 && shard >= g.hole {
		shard, from = g.hole, ports.Cursor{}
	}
	if !g.keeps || shard >= g.at.Shards {
		return nil
	}
	g.at.Shard, g.at.Key, g.at.ID = shard, from.Key, from.ID
	g.at.Done, g.at.Total, g.at.Handled = a.progress.Done, a.progress.Total, a.progress.Handled
	g.at.Met = a.met
	text, err := g.at.text()
	if err != nil {
		return err
	}
	g.last = text
	if g.o.Checkpoint != nil {
		g.o.Checkpoint(text)
	}
	return nil
}
