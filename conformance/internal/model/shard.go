package model

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// push queues the payloads of entries with the same id, time and tags by RULES 2, and counts the
// entries. The first entry makes a job if no job is queued. An entry that adds no payload is a
// duplicate or superseded.
func (s *shard) push(entries []core.Entry, rule core.PushRule, reply *ports.PushReply) {
	id, state := entries[0].ID, entries[0].State(reply.Now)
	job, queued := s.queued[id]
	payloads := core.NewPayloadSet(job.Payloads)

	for i, e := range entries {
		e.Payload.Score = core.NormalScore(e.Payload.Score)
		added, superseded := payloads.AddBy(s.rule, e.Payload)
		s.superseded += int64(superseded)

		switch {
		case i == 0 && !queued:
			reply.New++
		case added:
			reply.Merged++
		case superseded > 0:
			reply.Superseded++
		default:
			reply.Duplicate++
		}
	}

	if queued {
		state = core.MergePush(job.State, state, entries[0].When.Rule(rule))
	}
	s.queued[id] = core.Job{ID: id, Payloads: payloads.List(), State: state}
}

func (s *shard) putBack(job core.Job, by core.PutBack) {
	s.enqueue(job, func(queued core.State) core.State { return by.Merge(queued, job.State) })
}

func (s *shard) revive(dead core.DeadLetter, payloads []core.Payload, now core.Instant) {
	job := core.Job{ID: dead.ID, Payloads: payloads, State: core.Revived(dead.Tags, now)}
	s.enqueue(job, func(queued core.State) core.State { return core.MergeRevive(queued, dead.Tags, now) })
}

// enqueue adds a job to the queue. If its id is queued already, their payloads merge by
// the queue's rule and merge returns the state of the merged job.
func (s *shard) enqueue(job core.Job, merge func(queued core.State) core.State) {
	if len(job.Payloads) == 0 {
		return
	}
	queued, ok := s.queued[job.ID]
	job.Payloads = s.merge(queued.Payloads, job.Payloads)
	if ok {
		job.State = merge(queued.State)
	}
	s.queued[job.ID] = job
}

// merge merges payloads by the queue's rule.
func (s *shard) merge(existing, incoming []core.Payload) []core.Payload {
	merged, superseded := s.rule.Merge(existing, incoming)
	s.superseded += int64(superseded)
	return merged
}

func (s *shard) bury(dead core.DeadLetter) {
	if len(dead.Payloads) == 0 {
		return
	}
	existing := s.dead[dead.ID]
	dead.Group = s.enterGroup(existing.Group, dead.Group, dead.ChangedAt)
	dead.Payloads = s.merge(existing.Payloads, dead.Payloads)
	dead.Tags = dead.Tags.Union(existing.Tags)
	s.dead[dead.ID] = dead
}

// claimable returns the queued jobs whose ids are not claimed, in the order of claims.
func (s *shard) claimable() []core.Job {
	var jobs []core.Job
	for _, job := range sorted(s.queued, byTime) {
		if _, claimed := s.claimed[job.ID]; !claimed {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// mayClaim reports whether job may be claimed together with the shard's present claims (RULES 4).
func (s *shard) mayClaim(job core.Job) bool {
	for _, c := range s.claimed {
		if c.Recoveries >= 2 {
			return false
		}
	}
	return job.Recoveries < 2 || len(s.claimed) == 0
}

func (s *shard) head(paused bool) core.Head {
	jobs := s.claimable()
	if paused || len(jobs) == 0 || !s.mayClaim(jobs[0]) {
		return core.Head{}
	}
	return core.Head{Due: jobs[0].PerformAt, OK: true}
}
