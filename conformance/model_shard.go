package conformance

import (
	"github.com/skeinq/skein/core"
)

// The ways into the queue and the morgue, by RULES 2.

func (s *modelShard) push(e core.Entry, rule core.PushRule, now core.Instant) {
	e.Payload.Score = core.NormalScore(e.Payload.Score)
	coming := core.Job{ID: e.ID, Payloads: []core.Payload{e.Payload}, State: core.Pushed(e.When, now)}
	s.enqueue(coming, func(queued core.State) core.State { return core.MergePush(queued, coming.State, rule) })
}

func (s *modelShard) putBack(job core.Job) {
	s.enqueue(job, func(queued core.State) core.State { return core.MergeReturn(queued, job.State) })
}

func (s *modelShard) revive(id string, payloads []core.Payload, now core.Instant) {
	job := core.Job{ID: id, Payloads: payloads, State: core.Revived(now)}
	s.enqueue(job, func(queued core.State) core.State { return core.MergeRevive(queued, now) })
}

// enqueue adds a job to the queue. Where its id is queued already, their
// payloads unite and merge says what becomes of the queued job's state.
func (s *modelShard) enqueue(job core.Job, merge func(queued core.State) core.State) {
	if len(job.Payloads) == 0 {
		return
	}
	if queued, ok := s.queued[job.ID]; ok {
		job.Payloads = core.MergePayloads(queued.Payloads, job.Payloads)
		job.State = merge(queued.State)
	}
	s.queued[job.ID] = job
}

func (s *modelShard) bury(dead core.DeadLetter) {
	if len(dead.Payloads) == 0 {
		return
	}
	if there, ok := s.dead[dead.ID]; ok {
		dead = core.MergeDeadLetters(there, dead)
	}
	s.dead[dead.ID] = dead
}

// waiting is the queued jobs whose ids are not claimed, in the order in which
// they are claimed.
func (s *modelShard) waiting() []core.Job {
	var jobs []core.Job
	for _, job := range sorted(s.queued, byTime) {
		if _, claimed := s.claimed[job.ID]; !claimed {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// mayClaim reports whether the claims that the shard has allow another of the
// given job (RULES 4).
func (s *modelShard) mayClaim(job core.Job) bool {
	for _, c := range s.claimed {
		if c.Recoveries >= 2 {
			return false
		}
	}
	return job.Recoveries < 2 || len(s.claimed) == 0
}

func (s *modelShard) head(paused bool) core.Head {
	jobs := s.waiting()
	if paused || len(jobs) == 0 || !s.mayClaim(jobs[0]) {
		return core.Head{}
	}
	return core.Head{Due: jobs[0].PerformAt, OK: true}
}
