package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// namedCalls are the calls for an id that merge the rows that wait for it.
var namedCalls = map[string]func(v *viewed, s *postgres.Store, id string) error{
	"Find": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Find(v.t.Context(), ports.FindRequest{Queue: "orders", ID: id, Payloads: 1000})
		return err
	},
	"Expedite": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Expedite(v.t.Context(), ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{id}})
		return err
	},
	"Bury": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Bury(v.t.Context(), ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{id}})
		return err
	},
	"Delete": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Delete(v.t.Context(), ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{id}})
		return err
	},
	"Delete of payloads": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Delete(v.t.Context(),
			ports.JobStep{Shard: core.Shard{Queue: "orders"}, IDs: []string{id}, Payloads: [][]core.Payload{{}}})
		return err
	},
	"Import of jobs": func(v *viewed, s *postgres.Store, id string) error {
		j := core.Job{ID: id, State: core.State{RetryCount: -1}, Payloads: []core.Payload{{Data: []byte("imported")}}}
		_, err := s.Import(v.t.Context(),
			ports.ImportRequest{Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1, Jobs: []core.Job{j}})
		return err
	},
	"Revive": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Revive(v.t.Context(),
			ports.DeadLetterStep{Shard: core.Shard{Queue: "orders"}, DeadLetters: []ports.DeadLetterRef{{ID: id}}})
		return err
	},
	"Purge": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Purge(v.t.Context(),
			ports.DeadLetterStep{Shard: core.Shard{Queue: "orders"}, DeadLetters: []ports.DeadLetterRef{{ID: id}}})
		return err
	},
	"Edit": func(v *viewed, s *postgres.Store, id string) error {
		_, err := s.Edit(v.t.Context(),
			ports.EditRequest{Shard: core.Shard{Queue: "orders"}, ID: id, Old: []byte("a"), New: []byte("b")})
		return err
	},
}

// A call for one id merges the rows that wait for that id, and leaves the rest of the inbox to
// turns.
func TestPostgresNamedCallsMergeTheirIDs(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{NoWakeups: true})
	const others = 3_000
	left := func() (n int) {
		v.must(v.pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM %s.inbox`, v.schema)).Scan(&n))
		return n
	}
	var ids []string
	for i := range others {
		ids = append(ids, fmt.Sprintf("other-%04d", i))
	}
	v.pushApart(s, ids...)()
	for name, call := range namedCalls {
		id := "for " + name // of its own, so that no call finds a job that Expedite has made due
		v.pushApart(s, id, ids[0])()
		before := left()
		v.must(call(v, s, id))
		if got, want := left(), before-1; got != want {
			t.Errorf("%s leaves %d rows of the inbox, want %d: all but the row of its id", name, got, want)
		}
	}
	before := left()
	_, err := s.Cancel(t.Context(), ports.CancelRequest{Shard: core.Shard{Queue: "orders"}, IDs: ids[:10]})
	v.must(err)
	if got := left(); got != before {
		t.Errorf("Cancel leaves %d rows of the inbox, want all %d: it is about claims", got, before)
	}
}

// The reads of a merge of an id depend on the rows of that id, however long the inbox.
func TestPostgresMergingAnIDReadsItsRows(t *testing.T) {
	t.Parallel()
	for name, analyzed := range plannedFor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := map[int]int{}
			for _, rows := range []int{500, 50_000} {
				w := newWorkbench(t, time.Minute)
				w.plansFor("jobs", "inbox")
				kit.Exec(t, w.pool, fmt.Sprintf(`
					INSERT INTO %[1]s.inbox (shard, kind, perform_at, id, data, letter)
					SELECT 0, k.kind::%[1]s.arrival_kind, g, CASE g %% (%[2]d / 10) WHEN 0 THEN 'it' ELSE 'other-' || g END, g::text::bytea,
						CASE k.kind WHEN 'buried' THEN json_populate_record(NULL::%[1]s.dead_letters, json_build_object(
							'shard', 0, 'id', CASE g %% (%[2]d / 10) WHEN 0 THEN 'it' ELSE 'other-' || g END,
							'changed_at', g, 'error', '', 'tags', '', 'grp', 'g')) END
					FROM generate_series(1, %[2]d) g, (VALUES ('push'), ('buried')) k (kind)`, w.schema, rows))
				if analyzed {
					w.plansFor("jobs", "inbox")
				}
				call := fmt.Sprintf(`SELECT * FROM %s.merge_ids('orders', 0, ARRAY['it', 'nobody'], NULL)`, w.schema)
				read[rows] = w.pagesOf(call)
			}
			if read[50_000] > 2*read[500] {
				t.Errorf("a merge of 20 rows of an id beside 100,000 rows reads %d pages, beside 1,000 %d",
					read[50_000], read[500])
			}
		})
	}
}

// If more waits for an id than one step may merge, it is merged in parts, in order.
func TestPostgresMergesALongIDInParts(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.pushApart(core.PushRule{}, 2_500, 10, func(n int) string { return fmt.Sprint("id-", n/2_200) })
	var (
		left  []int
		until *string
	)
	call := fmt.Sprintf(`SELECT until::text, more FROM %s.merge_ids('orders', 0, ARRAY['id-0'], $1::text::xid8)`,
		w.schema)
	for more := true; more; left = append(left, w.waiting()) {
		w.must(w.pool.QueryRow(t.Context(), call, until).Scan(&until, &more))
	}
	w.same("left after each call", left, []int{1_500, 500, 300})
	found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "id-0"})
	w.must(err)
	w.same("payloads", found.Queued.Count, 2_200)
}

// sketch is a row that a transaction may leave in the inbox. Rows with the same tx are of one
// transaction.
type sketch struct {
	kind, id, data, grp            string
	rule, limit, at, push          int
	score, retries, recoveries, tx int
}

func sketches(r *rand.Rand) []sketch {
	list := make([]sketch, 150)
	kinds := []string{"push", "push", "push", "put_back", "buried", "freed"}
	for i := range list {
		k := sketch{
			kind:       kinds[r.IntN(len(kinds))],
			id:         fmt.Sprint("id-", r.IntN(12)),
			data:       fmt.Sprint("data-", r.IntN(6)),
			grp:        fmt.Sprint("group-", r.IntN(4)),
			rule:       r.IntN(3),
			limit:      r.IntN(500),
			at:         r.IntN(1000),
			push:       r.IntN(1000),
			score:      r.IntN(5),
			retries:    -1,
			recoveries: r.IntN(3),
			tx:         i / (1 + r.IntN(30)),
		}
		if k.kind == "put_back" {
			k.retries = r.IntN(4) - 1
		}
		list[i] = k
	}
	return list
}

// leave puts rows into the inbox of a shard that has some jobs, one transaction after another.
func (w *workbench) leave(list []sketch) {
	w.t.Helper()
	kit.Exec(w.t, w.pool, fmt.Sprintf(`
		INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, parked, score, data, failures)
		SELECT 0, 'id-' || g, 400 + g, 300, g %% 3 - 1, 0, false, g %% 2 = 0, 2, 'data-1', '[{"text": "was"}]' FROM generate_series(1, 20, 3) g;
		UPDATE %[1]s.shards SET parked = true, floor = 5000`, w.schema))
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].tx == list[0].tx {
			n++
		}
		w.must(pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			for _, k := range list[:n] {
				_, err := tx.Exec(w.t.Context(), fmt.Sprintf(`
					INSERT INTO %[1]s.inbox (shard, kind, rule, rule_limit, perform_at, first_push, score, retry_count, recoveries, id, failures, data, letter)
					VALUES (0, $1::text::%[1]s.arrival_kind, $2, $3, $4, $5, $6, $7, $8, $9,
						json_build_array(json_build_object('text', $10::text)), $11,
						CASE $1 WHEN 'buried' THEN json_populate_record(NULL::%[1]s.dead_letters, json_build_object(
							'shard', 0, 'id', $9::text, 'changed_at', $4::bigint, 'failures', json_build_array(json_build_object('text', $10::text)), 'tags', '', 'grp', $12::text)) END)`, w.schema),
					k.kind, k.rule, k.limit, k.at, k.push, k.score, k.retries, k.recoveries, k.id, "error of "+k.grp,
					[]byte(k.data), k.grp)
				if err != nil {
					return err
				}
			}
			return nil
		}))
		list = list[n:]
	}
}

// dump returns all that a shard holds, in order.
func (w *workbench) dump() []string {
	w.t.Helper()
	var all []string
	for _, q := range []string{
		`SELECT j.id, perform_at, first_push, retry_count, recoveries, failures, parked FROM {s}.jobs j`,
		`SELECT j.id, p.score, encode(p.data, 'escape') FROM {s}.jobs j, {s}.payloads_of(0, j.id, 1000) p`,
		`SELECT id, changed_at, failures, grp FROM {s}.dead_letters`,
		`SELECT id, score, encode(data, 'escape') FROM {s}.dead_letter_payloads`,
		`SELECT * FROM {s}.dead_groups`,
		`SELECT fresh, retrying, claimed, dead FROM {s}.counts`,
		`SELECT floor FROM {s}.leases`,
		`SELECT kind, id FROM {s}.inbox`,
	} {
		rows, err := w.pool.Query(w.t.Context(),
			strings.ReplaceAll(`SELECT q::text FROM (`+q+`) q ORDER BY 1`, "{s}", w.schema))
		w.must(err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		w.must(err)
		all = append(append(all, q), lines...)
	}
	return all
}

// An inbox that is merged id by id, in any order of ids, has the same result as one that is merged
// as a whole: jobs, dead letters, counts, groups and where claims look.
func TestPostgresMergesIDsAsItMergesAll(t *testing.T) {
	t.Parallel()
	for seed := range uint64(tier.Count(2, 8)) {
		list := sketches(rand.New(rand.NewPCG(seed, 1)))
		whole, named := newWorkbench(t, time.Minute), newWorkbench(t, time.Minute)
		whole.leave(list)
		named.leave(list)
		_, err := whole.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		whole.must(err)
		for _, n := range rand.New(rand.NewPCG(seed, 2)).Perm(12) {
			kit.Exec(t, named.pool,
				fmt.Sprintf(`SELECT %s.merge_ids('orders', 0, ARRAY['id-%d'], NULL)`, named.schema, n))
		}
		if diff := cmp.Diff(whole.dump(), named.dump()); diff != "" {
			t.Fatalf("seed %d: merged as a whole (-) and id by id (+):\n%s", seed, diff)
		}
	}
}
