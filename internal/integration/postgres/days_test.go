package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// Calls that create several days at once, in another order each, never wait for one another in a
// circle: not even if one of the days was created by a third call meanwhile, so that one of them finds it
// there and the other does not.
func TestPostgresNewDaysAreCreatedInOneOrder(t *testing.T) {
	t.Parallel()
	const rounds, day = 20, 24 * 3600 * 1_000_000
	w := newWorkbench(t, time.Minute)
	kit.Exec(t, w.pool, `ALTER FUNCTION `+w.schema+`.record SET lock_timeout = 0`) // a circle is to be reported as one
	_, err := w.store.Declare(t.Context(), ports.DeclareRequest{Queue: "invoices", Shards: 1})
	w.must(err)
	var queues []int
	w.must(w.pool.QueryRow(t.Context(), `SELECT array_agg(id ORDER BY id) FROM `+w.schema+`.queues`).Scan(&queues))
	first, last := queues[0], queues[1]

	insert := `INSERT INTO ` + w.schema + `.day_records (queue, day, sums)
		VALUES ($1, $2, array_fill(0::float8, ARRAY[134]))`
	record := func(at int, owner string, queues ...int) error {
		_, err := w.pool.Exec(t.Context(), `SELECT `+w.schema+`.record($1, NULL, '{}', '{}', '{}', '{}', '{}',
			$2::int[], ARRAY[$3, $3]::bigint[], array_fill(1::float8, ARRAY[2 * 134]))`, owner, queues, at)
		return err
	}
	waiters := func(n int) {
		w.viewed().eventually(fmt.Sprint(n, " calls wait"), func() (wait bool) {
			w.must(w.pool.QueryRow(t.Context(), `SELECT count(*) = $1 FROM pg_stat_activity
				WHERE wait_event_type = 'Lock' AND query LIKE $2`, n, "%"+w.schema+".record(%").Scan(&wait))
			return wait
		})
	}

	for round := range rounds {
		at := round * day
		other, err := w.pool.Begin(t.Context())
		w.must(err)
		_, err = other.Exec(t.Context(), insert, first, at)
		w.must(err)

		var group errgroup
		group.Go(func() error { return record(at, "n1", first, last) })
		waiters(1)
		_, err = w.pool.Exec(t.Context(), insert, last, at)
		w.must(err)
		group.Go(func() error { return record(at, "n2", last, first) })
		waiters(2)
		w.must(other.Rollback(t.Context()))
		w.must(group.Wait())
	}

	var sums []float64
	w.must(w.pool.QueryRow(t.Context(), `SELECT array_agg(DISTINCT sums[1]) FROM `+w.schema+`.day_records`).Scan(&sums))
	w.same("the sums of all days", sums, []float64{2})
}
