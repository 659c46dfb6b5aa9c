package retention

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// Store is what a [Keeper] needs of a store.
type Store interface {
	Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error)
	Purge(ctx context.Context, s ports.DeadLetterStep) (ports.StepReply, error)
	Audit(ctx context.Context, a ports.Action) error
}

// Shard is a held shard of a queue that keeps only some dead letters.
type Shard struct {
	ID     core.Shard
	Shards int
	Keep   core.Retention
	// From is the time before which nothing is removed, by the clock of this process.
	From time.Time
}

const (
	// interval is how often the shards are looked at.
	interval = time.Minute
	// entryAge is how long one entry of the audit counts what is removed.
	entryAge = time.Hour
	// mostSteps is how many steps one look makes in a shard.
	mostSteps = 100
)

// Config is how a [Keeper] works. All fields are set.
type Config struct {
	Store Store
	// Held returns the shards that the server holds now and whose queues keep only some dead letters.
	Held func() []Shard
	// Call returns the context of one call to the store, and Last that of a call at the end.
	Call, Last func() (context.Context, context.CancelFunc)
	// Node is the name of the server, for the audit.
	Node     string
	Logger   *slog.Logger
	Observer ports.Observer
	Outages  *report.Outages
}

// Keeper removes dead letters. Make it with [New]. It is for one goroutine.
type Keeper struct {
	cfg    Config
	status *report.Loop
	// entries are those of the audit that still count, by queue.
	entries map[string]*entry
}

// entry is an entry of the audit.
type entry struct {
	ports.Action
	began time.Time
	// sent is set if the store has it as it is.
	sent bool
}

// New returns a Keeper.
func New(cfg Config) *Keeper {
	return &Keeper{
		cfg:     cfg,
		status:  cfg.Outages.Loop("retention", core.Shard{}),
		entries: make(map[string]*entry),
	}
}

// Run removes dead letters until stop is closed.
func (k *Keeper) Run(stop <-chan struct{}) {
	timer := time.NewTicker(interval)
	defer timer.Stop()
	defer k.close()

	for {
		select {
		case <-timer.C:
			k.status.Called(k.look(stop))
			k.audit(k.cfg.Call, false)
		case <-stop:
			return
		}
	}
}

// look removes what the held shards have too many of.
func (k *Keeper) look(stop <-chan struct{}) error {
	now := time.Now()
	byQueue := make(map[string][]Shard)
	for _, s := range k.cfg.Held() {
		if !now.Before(s.From) {
			byQueue[s.ID.Queue] = append(byQueue[s.ID.Queue], s)
		}
	}

	var failed error
	for _, queue := range slices.Sorted(maps.Keys(byQueue)) {
		if err := k.lookAt(queue, byQueue[queue], stop); err != nil {
			failed = err
		}
	}
	return failed
}

// lookAt removes what shards of one queue have too many of. A shard that fails delays no other.
func (k *Keeper) lookAt(queue string, shards []Shard, stop <-chan struct{}) error {
	request := ports.StatsRequest{Queues: []string{queue}, Shards: []int{}}
	for _, s := range shards {
		request.Shards = append(request.Shards, s.ID.Index)
	}

	ctx, cancel := k.cfg.Call()
	defer cancel()
	stats, err := k.cfg.Store.Stats(ctx, request)
	if err != nil {
		return fmt.Errorf("count the dead letters of queue %q: %w", queue, err)
	}

	var failed error
	for _, st := range stats[0].Shards {
		at := slices.IndexFunc(shards, func(s Shard) bool { return s.ID == st.Shard })
		if at < 0 || st.Dead == 0 {
			continue
		}
		removed, err := k.trim(shards[at], st.Dead, stats[0].Now, stop)
		if err != nil {
			failed = fmt.Errorf("remove old dead letters of shard %v: %w", st.Shard, err)
		}
		k.note(st.Shard, shards[at].Keep, removed)
	}
	return failed
}

// trim removes what one shard has too many of, the oldest first. dead is how many dead letters it had
// at a time. The store counts them again in each step of a Count, since operators, and the server that
// had the shard before, may remove some meanwhile.
func (k *Keeper) trim(s Shard, dead int64, now core.Instant, stop <-chan struct{}) (removed int64, err error) {
	byAge, part := s.Keep.Age > 0, s.Keep.Part(s.Shards)
	for range mostSteps {
		step := ports.DeadLetterStep{Shard: s.ID, Before: s.Keep.Before(now)}
		if !byAge {
			if part == 0 || dead-removed <= part {
				return removed, nil
			}
			step.Before, step.Keep = now, part
		}

		reply, err := k.purge(step)
		removed += int64(reply.Handled)
		if err != nil {
			return removed, err
		}

		select {
		case <-stop:
			return removed, nil
		default:
		}
		if byAge {
			byAge = reply.More
		} else if !reply.More {
			return removed, nil
		}
	}
	return removed, nil
}

func (k *Keeper) purge(step ports.DeadLetterStep) (ports.StepReply, error) {
	ctx, cancel := k.cfg.Call()
	defer cancel()
	return k.cfg.Store.Purge(ctx, step)
}

// note counts what was removed.
func (k *Keeper) note(shard core.Shard, keep core.Retention, removed int64) {
	if removed == 0 {
		return
	}
	k.cfg.Observer.DeadLettersExpired(ports.ExpiryEvent{Shard: shard, Expired: int(removed)})

	queue := shard.Queue
	e := k.entries[queue]
	if e == nil {
		e = &entry{began: time.Now(), Action: ports.Action{
			ID: rand.Text(), Verb: "expire", Actor: "server " + k.cfg.Node, Queue: queue,
		}}
		k.entries[queue] = e
		k.cfg.Logger.Info("dead letters are removed, because their queue keeps only some", "queue", queue, "keeps", keep.String())
	}
	e.Reason, e.sent = keep.String(), false
	e.Handled += int(removed)
}

// audit stores the entries that have changed. An entry ends after an hour, or if the server does.
func (k *Keeper) audit(call func() (context.Context, context.CancelFunc), last bool) {
	for queue, e := range k.entries {
		e.Took = time.Since(e.began)
		ends := last || e.Took >= entryAge
		if e.sent && !ends {
			continue
		}
		e.Ended = ends

		ctx, cancel := call()
		err := k.cfg.Store.Audit(ctx, e.Action)
		cancel()
		if err != nil {
			k.cfg.Logger.Debug("the removal of dead letters is not in the audit yet", "queue", queue, "error", err)
			continue
		}
		e.sent = true
		if ends {
			delete(k.entries, queue)
		}
	}
}

// close ends the entries of the audit.
func (k *Keeper) close() { k.audit(k.cfg.Last, true) }
