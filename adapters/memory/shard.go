package memory

import (
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// shard is one partition of a queue: its jobs, its claims, its morgue and its lease.
//
// Queued jobs are listed by time in two parts: ready for ids that are not claimed, and parked for
// ids that are. So a claim only looks at the front of ready, and parked is never longer than the
// list of claims.
type shard struct {
	queue *queue
	id    core.Shard

	mu   sync.Mutex
	ids  map[string]*entity
	peak int // the greatest length of ids so far

	ready    sorted[*entity]
	parked   sorted[*entity]
	retrying retryingLists
	byID     sorted[*entity] // only if the queue has IndexIDs

	claimed  claimList
	lease    lease
	morgue   morgue
	calendar calendar
	past     past
	once     once

	processed, failed, superseded, stale, repeated int64

	subscribers []*storekit.Subscriber
}

func newShard(q *queue, id core.Shard) *shard {
	s := &shard{queue: q, id: id, ids: make(map[string]*entity)}
	s.morgue.shard = s
	return s
}

// entity is what a shard holds for an id besides its dead letters: a queued job, a claimed one, or
// both.
type entity struct {
	id string
	// State and payloads are those of the queued job, if there is one.
	core.State
	payloads core.PayloadSet
	queued   bool
	claim    *claim
}

func (e *entity) byTime() place  { return place{int64(e.PerformAt), e.id} }
func (e *entity) byCount() place { return place{int64(e.RetryCount), e.id} }
func (e *entity) byID() place    { return place{0, e.id} }

// retryingLists list the queued jobs with a failure; fresh jobs are in none of them.
type retryingLists struct {
	byTime, byID, byCount sorted[*entity]
}

// rule returns the merge rule of the shard's queue.
func (s *shard) rule() core.MergeRule { return *s.queue.merge.Load() }

// entity returns what the shard holds for an id, and adds an empty entity if it holds nothing.
func (s *shard) entity(id string) *entity {
	e := s.ids[id]
	if e == nil {
		e = &entity{id: id}
		s.ids[id] = e
		s.peak = max(s.peak, len(s.ids))
	}
	return e
}

// queued returns the id's entity if it has a queued job, else nil.
func (s *shard) queued(id string) *entity {
	if e := s.ids[id]; e != nil && e.queued {
		return e
	}
	return nil
}

// maxReusedIDs is the greatest peak of an emptied map of ids that is used again.
const maxReusedIDs = 1 << 14

// forget drops an empty entity. Maps don't shrink, so a map that was large is replaced when its
// last id is dropped.
func (s *shard) forget(e *entity) {
	if e.queued || e.claim != nil {
		return
	}
	delete(s.ids, e.id)
	if len(s.ids) == 0 && s.peak > maxReusedIDs {
		s.ids, s.peak = make(map[string]*entity), 0
	}
}

// enqueue makes the entity's payloads a queued job.
func (s *shard) enqueue(e *entity, state core.State) {
	e.State, e.queued = state, true
	s.list(e)
}

// dequeue removes the queued job from its lists. Its State and payloads stay in the entity, for
// the caller to use or to clear.
func (s *shard) dequeue(e *entity) {
	s.unlist(e)
	e.queued = false
}

// drop deletes the queued job.
func (s *shard) drop(e *entity) {
	s.dequeue(e)
	e.State, e.payloads = core.State{}, core.PayloadSet{}
	s.forget(e)
}

// restate changes the queued job's state, and its places in the lists if necessary.
func (s *shard) restate(e *entity, state core.State) {
	if e.PerformAt == state.PerformAt && e.RetryCount == state.RetryCount {
		e.State = state
		return
	}
	s.unlist(e)
	e.State = state
	s.list(e)
}

func (s *shard) list(e *entity) {
	s.timeline(e).Insert(e.byTime(), e)
	if s.queue.record.IndexIDs {
		s.byID.Insert(e.byID(), e)
	}
	if !e.Fresh() {
		s.retrying.byTime.Insert(e.byTime(), e)
		s.retrying.byID.Insert(e.byID(), e)
		s.retrying.byCount.Insert(e.byCount(), e)
	}
}

func (s *shard) unlist(e *entity) {
	s.timeline(e).Delete(e.byTime())
	if s.queue.record.IndexIDs {
		s.byID.Delete(e.byID())
	}
	if !e.Fresh() {
		s.retrying.byTime.Delete(e.byTime())
		s.retrying.byID.Delete(e.byID())
		s.retrying.byCount.Delete(e.byCount())
	}
}

// timeline returns the list by time that a queued job belongs to.
func (s *shard) timeline(e *entity) *sorted[*entity] {
	if e.claim != nil {
		return &s.parked
	}
	return &s.ready
}

// head returns when the next job of the shard can be claimed if nothing is pushed or
// settled until then.
func (s *shard) head() core.Head {
	head, _ := s.look()
	return head
}

// look returns the head, and reports whether the queue is paused. The head of a paused queue is
// zero.
func (s *shard) look() (head core.Head, paused bool) {
	if s.queue.paused.Load() {
		return core.Head{}, true
	}
	return s.unpausedHead(), false
}

// unpausedHead is head as if the queue were not paused.
func (s *shard) unpausedHead() core.Head {
	e, ok := s.ready.First()
	if !ok || !s.claimed.admits(e) {
		return core.Head{}
	}
	return core.Head{Due: e.PerformAt, OK: true}
}

// oldest returns the time since when the longest-waiting queued job waits.
func (s *shard) oldest() core.Head {
	var head core.Head
	for _, l := range []*sorted[*entity]{&s.ready, &s.parked} {
		n := 0
		for it := range l.Scan(storekit.Start{}, false) {
			since := it.value.WaitsFrom()
			if n++; n > storekit.OldestJobs {
				since = it.value.PerformAt
			}

			if head.OK && it.value.PerformAt >= head.Due {
				break
			}
			head = head.Earlier(core.Head{Due: since, OK: true})
		}
	}
	return head
}

func (s *shard) counts() ports.Counts {
	retries := int64(s.retrying.byID.Len())
	return ports.Counts{
		Fresh:     int64(s.ready.Len()+s.parked.Len()) - retries,
		Retrying:  retries,
		Claimed:   int64(s.claimed.size),
		Dead:      int64(len(s.morgue.deadLetters)),
		Processed: s.processed,
		Failed:    s.failed,

		Superseded: s.superseded,
		Stale:      s.stale,
		Repeated:   s.repeated,
		Held:       int64(s.retrying.byTime.CountFrom(int64(core.MaxInstant))),
		Oldest:     s.oldest(),
	}
}
