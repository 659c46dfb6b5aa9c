package service

import (
	"errors"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

type statsQuery struct {
	Queue string `query:"queue" doc:"one queue; by default all queues"`
}

func (q *statsQuery) about(a *Action) { a.Queue = q.Queue }

// Counts are sizes. The first three have the names of Lowkiq's API.
type Counts struct {
	Length       int64     `json:"length" doc:"queued jobs: fresh and retrying"`
	MorgueLength int64     `json:"morgue_length" doc:"ids in the morgue"`
	Waiting      int64     `json:"waiting" doc:"jobs that no server works on: queued, with those that are held or not due yet, and orphaned"`
	Lag          float64   `json:"lag" doc:"the longest wait of a job for a server in seconds, since it was due and pushed, or since its server's lease ended"`
	Fresh        int64     `json:"fresh" doc:"queued jobs without a failure"`
	Retrying     int64     `json:"retrying" doc:"queued jobs with a failure, with those that are held"`
	Held         int64     `json:"held" doc:"queued jobs that are held after their last retry, among retrying"`
	Claimed      int64     `json:"claimed" doc:"claimed jobs, orphaned ones too"`
	Orphaned     int64     `json:"orphaned" doc:"claimed jobs whose server is gone"`
	Quarantined  int64     `json:"quarantined" doc:"records that can't be read and were set aside"`
	Processed    int64     `json:"processed" doc:"jobs done since the queue began"`
	Failed       int64     `json:"failed" doc:"jobs that failed or were buried since the queue began"`
	Superseded   int64     `json:"superseded" doc:"payloads that the merge rule has dropped since the queue began"`
	Stale        int64     `json:"stale" doc:"payloads that were dropped since the queue began, because a payload of their id with at least their score was done"`
	Repeated     int64     `json:"repeated" doc:"payloads that were dropped since the queue began, because an equal one was accepted for their id within the time of its push"`
	Oldest       time.Time `json:"oldest,omitzero" doc:"when the queued job that has waited longest began to wait or, if none waits, when the first one becomes due; absent if no job is queued, or if all are held"`
}

func countsOf(c *inspect.Counts) Counts {
	return Counts{
		Length:       c.Length(),
		MorgueLength: c.Dead,
		Waiting:      c.Waiting(),
		Lag:          c.Lag.Seconds(),
		Fresh:        c.Fresh,
		Retrying:     c.Retrying,
		Held:         c.Held,
		Claimed:      c.Claimed,
		Orphaned:     c.Orphaned,
		Quarantined:  c.Quarantined,
		Processed:    c.Processed,
		Failed:       c.Failed,
		Superseded:   c.Superseded,
		Stale:        c.Stale,
		Repeated:     c.Repeated,
		Oldest:       c.Oldest.UTC(),
	}
}

// Add sums counts up; the lag is the largest.
func (c *Counts) Add(o Counts) {
	if c.Oldest.IsZero() || !o.Oldest.IsZero() && o.Oldest.Before(c.Oldest) {
		c.Oldest = o.Oldest
	}
	c.Lag = max(c.Lag, o.Lag)

	for _, sum := range []struct {
		into *int64
		of   int64
	}{
		{&c.Length, o.Length},
		{&c.MorgueLength, o.MorgueLength},
		{&c.Waiting, o.Waiting},
		{&c.Fresh, o.Fresh},
		{&c.Retrying, o.Retrying},
		{&c.Held, o.Held},
		{&c.Claimed, o.Claimed},
		{&c.Orphaned, o.Orphaned},
		{&c.Quarantined, o.Quarantined},
		{&c.Processed, o.Processed},
		{&c.Failed, o.Failed},
		{&c.Superseded, o.Superseded},
		{&c.Stale, o.Stale},
		{&c.Repeated, o.Repeated},
	} {
		*sum.into += sum.of
	}
}

type queueCounts struct {
	Counts
	Shards   int    `json:"shards" doc:"the queue's shard count"`
	IndexIDs bool   `json:"index_ids" doc:"whether its jobs can be listed by id"`
	Merge    string `json:"merge" doc:"its merge rule: union, newest, latest(n), every or every.last(n)"`
	Paused   bool   `json:"paused" doc:"whether the queue is paused: servers claim none of its jobs"`
}

func queueCountsOf(s *inspect.QueueStats) queueCounts {
	return queueCounts{
		countsOf(&s.Counts),
		s.Queue.Shards,
		s.Queue.IndexIDs,
		s.Queue.Merge.String(),
		s.Queue.Paused,
	}
}

// StatsReply is the size and lag of queues.
type StatsReply struct {
	Total     Counts                 `json:"total" doc:"the sums of all queues, and the largest lag"`
	ByWorker  map[string]queueCounts `json:"by_worker" doc:"each queue, by its name"`
	Unreached []string               `json:"unreached,omitempty" doc:"shards that can't be reached now; the figures lack them"`
	AsOf      time.Time              `json:"as_of,omitzero" doc:"the time of the figures, by the store's clock"`
}

func (c *call) stats(q *statsQuery) (*StatsReply, error) {
	s, err := c.snapshot(q.Queue)
	if err != nil {
		return nil, err
	}

	reply := &StatsReply{
		ByWorker:  make(map[string]queueCounts, len(s.stats)),
		Unreached: shardNames(s.unreached),
		AsOf:      s.asOf(),
	}
	for at := range s.stats {
		queue := queueCountsOf(&s.stats[at])
		reply.ByWorker[s.stats[at].Queue.Name] = queue
		reply.Total.Add(queue.Counts)
	}
	return reply, nil
}

type shardRow struct {
	Shard string `json:"shard" doc:"its name, as orders/3"`
	Index int    `json:"index" doc:"its number"`
	Counts
	Owner     string    `json:"owner,omitempty" doc:"the server of its last lease"`
	Token     int64     `json:"token,omitempty" doc:"the fencing token of that lease"`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"when that lease ends; after that no server works the shard"`
}

// QueueReply is the size and lag of a queue and of each of its shards.
type QueueReply struct {
	Name string `json:"name" doc:"the queue"`
	queueCounts
	Settings  Row[inspect.QueueSettings] `json:"settings" doc:"the settings that operators can change while servers run"`
	ShardList []shardRow                 `json:"shard_list" doc:"the shards that were reached, in order"`
	Unreached []string                   `json:"unreached,omitempty" doc:"shards that can't be reached now"`
	AsOf      time.Time                  `json:"as_of,omitzero" doc:"the time of the figures, by the store's clock"`
}

// NoQuery is the input of looks that need none.
type NoQuery struct{}

func (c *call) queueStats(*NoQuery) (*QueueReply, error) {
	s, err := c.snapshot(c.queue)
	if err != nil {
		return nil, err
	}

	of := &s.stats[0]
	reply := &QueueReply{
		Name:        of.Queue.Name,
		queueCounts: queueCountsOf(of),
		Unreached:   shardNames(s.unreached),
		AsOf:        s.asOf(),
	}

	if reply.Settings, err = c.settingsOf(&of.Queue); err != nil {
		return nil, err
	}
	reply.ShardList = make([]shardRow, len(of.Shards))
	for at := range of.Shards {
		sh := &of.Shards[at]
		reply.ShardList[at] = shardRow{
			sh.Shard.String(),
			sh.Shard.Index,
			countsOf(&sh.Counts),
			sh.Owner,
			sh.Token,
			sh.ExpiresAt.UTC(),
		}
	}
	return reply, nil
}

// maxRest bounds how old a snapshot gets, even if the store is slow or very many queues are polled
// one by one.
const maxRest = 15 * time.Second

// RestAfter returns the pause after a look of the given duration: 99 times as long, within the
// given bounds. So the store spends less than a hundredth of its time on looks, however many
// clients poll, and however often.
func RestAfter(took, least, most time.Duration) time.Duration {
	return min(max(99*took, least), most)
}

// snapshots are the statistics that pollers share.
type snapshots struct {
	mu      sync.Mutex
	byQueue map[string]*snapshot
	// rest is the time until which no other look begins. looks is the number of looks under way.
	rest  time.Time
	looks int
}

// snapshot is the statistics of a queue, or of all for the name "".
type snapshot struct {
	// free holds a value while a request asks the store.
	free chan struct{}
	snapped
}

// snapped is the result, and its time; zero if there is no result yet.
type snapped struct {
	stats     []inspect.QueueStats
	unreached []core.Shard
	at        time.Time
}

// asOf returns the time of the statistics: the earliest of the clocks of its queues' stores.
func (s *snapped) asOf() (at time.Time) {
	for n := range s.stats {
		if now := s.stats[n].Now; at.IsZero() || now.Before(at) {
			at = now
		}
	}
	return at.UTC()
}

// forget makes the next request read the store: an action has changed something.
func (s *snapshots) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byQueue = nil
}

func (s *snapshots) of(queue string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byQueue[queue] == nil {
		if s.byQueue == nil {
			s.byQueue = make(map[string]*snapshot)
		}
		s.byQueue[queue] = &snapshot{free: make(chan struct{}, 1)}
	}
	return s.byQueue[queue]
}

// look reports whether to read the store again. It returns false during a rest, and while another
// request reads, unless the result of the time at is too old. If it returns true, the caller calls
// looked afterwards.
func (s *snapshots) look(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(at) < maxRest && (s.looks > 0 || now.Before(s.rest)) {
		return false
	}
	s.looks++
	return true
}

// looked begins the rest after a look.
func (s *snapshots) looked(cost time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks--
	s.rest = time.Now().Add(RestAfter(cost, 0, maxRest))
}

// drop removes a queue's snapshot.
func (s *snapshots) drop(queue string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byQueue, queue)
}

// snapshot returns the statistics of a queue, or of all queues for "". They may be up to maxRest
// old. A request for the same queue waits while another one reads the store, and shares its result.
func (c *call) snapshot(queue string) (snapped, error) {
	s := c.snapshots.of(queue)
	select {
	case s.free <- struct{}{}:
		defer func() { <-s.free }()
	case <-c.ctx.Done():
		return snapped{}, c.ctx.Err()
	}

	// Another request may have read the store while this one waited.
	if !c.snapshots.look(s.at) {
		return s.snapped, nil
	}

	fresh, err := c.snap(queue)
	if err != nil {
		c.snapshots.drop(queue)
		return snapped{}, err
	}
	s.snapped = fresh
	return fresh, nil
}

func (c *call) snap(queue string) (s snapped, err error) {
	began := time.Now()
	defer func() { c.snapshots.looked(time.Since(began)) }()

	var names []string
	if queue != "" {
		names = []string{queue}
	}

	s.stats, err = c.inspector.Stats(c.ctx, names...)
	if s.unreached, err = c.partial(err); err != nil {
		return s, err
	}
	if queue != "" && len(s.stats) != 1 {
		return s, inspect.ErrUnknownQueue
	}

	s.at = time.Now()
	return s, nil
}

// partial is Partial for the errors of a call. Once the call's time is over, it returns the error,
// because the result may lack more shards than the error names.
func (c *call) partial(err error) ([]core.Shard, error) {
	if c.ctx.Err() != nil {
		return nil, err
	}
	return Partial(err)
}

// Partial returns the shards that a result lacks, or the error if it is not an
// [inspect.PartialError].
func Partial(err error) ([]core.Shard, error) {
	var lacks *inspect.PartialError
	if errors.As(err, &lacks) {
		return lacks.Unreached, nil
	}
	return nil, err
}
