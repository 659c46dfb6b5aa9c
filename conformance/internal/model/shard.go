package model

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// How jobs and dead letters enter a shard, by RULES 2, and which jobs may be claimed.

// countPush counts what entries of one id meet: the first makes a job if none is queued, and each
// with the bytes of another is a duplicate.
func (s *shard) countPush(entries []core.Entry, reply *ports.PushReply) {
	queued, there := s.queued[entries[0].ID]
	seen := make(map[string]bool, len(queued.Payloads)+len(entries))
	for _, p := range queued.Payloads {
		seen[string(p.Data)] = true
	}
	for i, e := range entries {
		switch {
		case i == 0 && !there:
			reply.New++
		case seen[string(e.Payload.Data)]:
			reply.Duplicate++
		default:
			reply.Merged++
		}
		seen[string(e.Payload.Data)] = true
	}
}

// push queues the payloads of entries of one id and time.
func (s *shard) push(entries []core.Entry, rule core.PushRule, now core.Instant) {
	var payloads core.PayloadSet
	for _, e := range entries {
		e.Payload.Score = core.NormalScore(e.Payload.Score)
		payloads.Add(e.Payload)
	}
	coming := core.Job{ID: entries[0].ID, Payloads: payloads.List(), State: core.Pushed(entries[0].When, now)}
	s.enqueue(coming, func(queued core.State) core.State { return core.MergePush(queued, coming.State, rule) })
}

func (s *shard) putBack(job core.Job, by core.PutBack) {
	s.enqueue(job, func(queued core.State) core.State { return by.Merge(queued, job.State) })
}

func (s *shard) revive(id string, payloads []core.Payload, now core.Instant) {
	job := core.Job{ID: id, Payloads: payloads, State: core.Revived(now)}
	s.enqueue(job, func(queued core.State) core.State { return core.MergeRevive(queued, now) })
}

// enqueue adds a job to the queue. If its id is queued already, their payloads are
// united and merge returns the state of the merged job.
func (s *shard) enqueue(job core.Job, merge func(queued core.State) core.State) {
	if len(job.Payloads) == 0 {
		return
	}
	if queued, ok := s.queued[job.ID]; ok {
		job.Payloads = core.MergePayloads(queued.Payloads, job.Payloads)
		job.State = merge(queued.State)
	}
	s.queued[job.ID] = job
}

func (s *shard) bury(dead core.DeadLetter) {
	if len(dead.Payloads) == 0 {
		return
	}
	there, ok := s.dead[dead.ID]
	dead.Group = s.enterGroup(there.Group, dead.Group, dead.ChangedAt)
	if ok {
		dead, _ = core.MergeDeadLetters(there, dead, core.MergeRule{})
	}
	s.dead[dead.ID] = dead
}

// claimable returns the queued jobs whose ids are not claimed, in the order in which
// they are to be claimed.
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
