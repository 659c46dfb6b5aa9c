package random

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// imported draws dead letters or jobs with ids of one shard, which the store may have already.
// Their times are often earlier or later than now.
func (d *driver) imported() ports.ImportRequest {
	at := d.shard()
	q := d.queues[slices.IndexFunc(d.queues, func(q ports.Queue) bool { return q.Name == at.Queue })]
	r := ports.ImportRequest{Shard: at, Shards: q.Shards, Generation: q.Generation}
	if rarely(d, "another layout") {
		r.Generation++
	}

	r.OnlyPaused = rarely(d, "only if paused")
	ids := slices.DeleteFunc(randomIDs(), func(id string) bool { return core.ShardOf(id, q.Shards) != at.Index })
	if len(ids) == 0 {
		return r
	}

	now := d.model().Now()
	// Records go by their number only where settlements add them.
	if d.keep.Any() && d.keep.Count == 0 && rarely(d, "records") {
		d.importedPast(&r, ids, now)
		return r
	}

	jobs := rapid.Bool().Draw(d.t, "jobs")
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, len(ids), rapid.ID[string]).Draw(d.t, "ids") {
		if jobs {
			r.Jobs = append(r.Jobs, core.Job{ID: id, Payloads: d.somePayloads(), State: core.State{
				PerformAt:  now.Add(pick(d, "performs", -time.Hour, -time.Second, 0, time.Second)),
				RetryCount: pick(d, "retries", -1, -1, 0, 2),
				Recoveries: pick(d, "recoveries", 0, 0, 1, 2),
				FirstPush:  now.Add(pick(d, "first", -time.Hour, 0, time.Second)),
				Failures:   pick(d, "failures", randomFailures()...),
				Tags:       d.tags(),
				Slot:       d.slot(),
			}})
			if rarely(d, "held") {
				r.Jobs[len(r.Jobs)-1].PerformAt = core.MaxInstant
			}
			continue
		}

		letter := core.DeadLetter{
			ID:        id,
			ChangedAt: now.Add(pick(d, "changed", -time.Hour, -time.Second, 0, 0, time.Second)),
			Failures:  pick(d, "failures", randomFailures()...),
			Group:     core.GroupName(pick(d, "group", randomGroups()...)),
			Tags:      d.tags(),
		}
		letter.Payloads = d.somePayloads()
		r.DeadLetters = append(r.DeadLetters, letter)
	}
	return r
}

// importedPast draws records or marks.
func (d *driver) importedPast(r *ports.ImportRequest, ids []string, now core.Instant) {
	marks := rapid.Bool().Draw(d.t, "marks")
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, len(ids), rapid.ID[string]).Draw(d.t, "ids") {
		p := core.Past{
			ID:     id,
			DoneAt: now.Add(pick(d, "done", -time.Hour, -time.Second, 0, time.Second)),
			Score:  float64(pick(d, "score", 1, 2, 3, 4)),
			Raises: rapid.Bool().Draw(d.t, "raises"),
			Result: pick(d, "result", nil, []byte("imported")),
		}
		if marks {
			r.Marks = append(r.Marks, p)
		} else {
			r.Past = append(r.Past, p)
		}
	}
}

// randomFailures returns lists of failures as a store keeps them.
func randomFailures() []core.Failures {
	boom := core.Failure{Text: "\x1eboom"}
	return []core.Failures{nil, {boom}, {{At: 1, Node: "é"}, boom}, {boom, boom, boom, boom, {Node: "web-2"}}}
}

// somePayloads draws payloads of an entry, in order.
func (d *driver) somePayloads() []core.Payload {
	var payloads core.PayloadSet
	for _, data := range d.distinctData(pick(d, "payloads", 1, 1, 2, 3)) {
		payloads.Add(core.Payload{
			Data:  data,
			Score: float64(pick(d, "score", 1, 2, 3)),
			Meta:  pick(d, "meta", nil, []byte("m")),
		})
	}
	return payloads.List()
}

// deleteStep draws a step that deletes jobs, or payloads of jobs with the scores that pushes draw.
func (d *driver) deleteStep() ports.JobStep {
	s := d.jobStep()
	if rapid.Bool().Draw(d.t, "whole") {
		return s
	}
	s.IDs = rapid.SliceOfNDistinct(rapid.SampledFrom(randomIDs()), 0, 4, rapid.ID[string]).Draw(d.t, "ids")
	s.Payloads = [][]core.Payload{}
	for range s.IDs {
		s.Payloads = append(s.Payloads, d.somePayloads())
	}
	return s
}
