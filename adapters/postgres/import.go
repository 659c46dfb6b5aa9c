package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Import implements [ports.Operator].
func (s *Store) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	switch {
	case len(r.Jobs) > 0:
		return s.importJobs(ctx, &r)
	case len(r.Past)+len(r.Marks) > 0:
		return s.importPast(ctx, &r)
	}

	var (
		st      status
		reply   = ports.StepReply{Reached: len(r.DeadLetters)}
		letters = make([]letter, len(r.DeadLetters))
		p       = newPayloadArgs()
	)

	for i := range r.DeadLetters {
		d := &r.DeadLetters[i]
		letters[i] = newLetter(d)
		p.add(i, d.Payloads)
	}
	text, err := asJSON(letters)
	if err != nil {
		return ports.StepReply{}, err
	}

	err = s.queryOne(ctx, ifRolledBack|operated, []any{&st, &reply.Now, &reply.Handled},
		`SELECT status, coalesce(now, 0), handled
		FROM {schema}.step_import($1, $2, $3, $4, $5, $6, $7::text::json, $8, $9, $10, $11)`,
		textOrNone(r.Shard.Queue), r.Shard.Index, s.now(), r.Shards, r.Generation, r.OnlyPaused,
		text, p.places, p.scores, p.data, p.metas)
	if err == nil {
		err = st.layoutErr(r.Shard, storekit.Layout{Shards: r.Shards, Generation: r.Generation})
	}
	if err != nil {
		return ports.StepReply{}, err
	}
	return reply, nil
}

// importJobs is Import of jobs. It first merges the rows of the inbox for their ids, because those
// were pushed before.
func (s *Store) importJobs(ctx context.Context, r *ports.ImportRequest) (ports.StepReply, error) {
	var (
		st       status
		reply    = ports.StepReply{Reached: len(r.Jobs)}
		earliest *core.Instant
		p        = newPayloadArgs()
		ids      = make([]string, len(r.Jobs))
		jobs     = make([]importedJob, len(r.Jobs))
	)

	for i := range r.Jobs {
		j := &r.Jobs[i]
		ids[i], jobs[i] = j.ID, newImportedJob(j)
		p.add(i, j.Payloads)
	}
	text, err := asJSON(jobs)
	if err != nil {
		return ports.StepReply{}, err
	}

	if err := s.mergeIDs(ctx, r.Shard, ids...); err != nil {
		return ports.StepReply{}, err
	}

	err = s.queryOne(ctx, ifRolledBack|operated, []any{&st, &reply.Now, &reply.Handled, &earliest},
		`SELECT status, coalesce(now, 0), handled, earliest
		FROM {schema}.step_import_jobs($1, $2, $3, $4, $5, $6, $7::text::json, $8, $9, $10, $11)`,
		textOrNone(r.Shard.Queue), r.Shard.Index, s.now(), r.Shards, r.Generation, r.OnlyPaused,
		text, p.places, p.scores, p.data, p.metas)
	if err == nil {
		err = st.layoutErr(r.Shard, storekit.Layout{Shards: r.Shards, Generation: r.Generation})
	}
	if err != nil {
		return ports.StepReply{}, err
	}

	if earliest != nil {
		s.wake(r.Shard, *earliest)
	}
	return reply, nil
}

// importPast is Import of records or marks.
func (s *Store) importPast(ctx context.Context, r *ports.ImportRequest) (ports.StepReply, error) {
	rows := make([]importedPast, 0, r.Entries())
	for i := range r.Past {
		rows = append(rows, newImportedPast(r.Past[i].Stored(r.Past[i].ID, r.Past[i].DoneAt), false))
	}
	for i := range r.Marks {
		rows = append(rows, newImportedPast(core.ImportMark(nil, r.Marks[i]), true))
	}
	text, err := asJSON(rows)
	if err != nil {
		return ports.StepReply{}, err
	}

	var st status
	reply := ports.StepReply{Reached: len(rows)}
	err = s.queryOne(ctx, ifRolledBack|operated, []any{&st, &reply.Now, &reply.Handled},
		`SELECT status, coalesce(now, 0), handled
		FROM {schema}.step_import_past($1, $2, $3, $4, $5, $6, $7::text::json, $8)`,
		textOrNone(r.Shard.Queue), r.Shard.Index, s.now(), r.Shards, r.Generation, r.OnlyPaused,
		text, core.ImportedKeepAge.Microseconds())
	if err == nil {
		err = st.layoutErr(r.Shard, storekit.Layout{Shards: r.Shards, Generation: r.Generation})
	}
	if err != nil {
		return ports.StepReply{}, err
	}
	return reply, nil
}

// payloadArgs are payloads as parameters of a step that imports: for each payload the place of its
// entry, from 1, with score, bytes and Meta.
type payloadArgs struct {
	places      []int32
	scores      []float64
	data, metas [][]byte
}

// newPayloadArgs returns no payloads. Its lists are not nil, which SQL would see as NULL.
func newPayloadArgs() payloadArgs {
	return payloadArgs{places: []int32{}, scores: []float64{}, data: [][]byte{}, metas: [][]byte{}}
}

// add adds the payloads of the entry at a position.
func (a *payloadArgs) add(at int, payloads []core.Payload) {
	for _, p := range payloads {
		a.places, a.scores, a.data =
			append(a.places, int32(at+1)), append(a.scores, core.NormalScore(p.Score)), append(a.data, notNull(p.Data))
		if len(p.Meta) == 0 {
			p.Meta = nil
		}
		a.metas = append(a.metas, p.Meta)
	}
}
