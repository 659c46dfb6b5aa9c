package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// A full disk stops pushes and turns, since a turn writes before it frees anything. Once the disk
// has room, a server handles each job that a push has stored, once, and no other: entries that
// ErrFull reports as not stored are not there. Only the tables are on that disk: with the WAL there
// as well Postgres itself stops.
func TestPostgresAFullDiskStopsTurnsAndLosesNothing(t *testing.T) {
	tier.Long(t, "fills a disk")
	disk := testservers.SmallDisk(t, 40)
	pool := testservers.OwnPostgres(t, "fsync=off", "autovacuum=off")
	kit.Exec(t, pool, fmt.Sprintf("CREATE TABLESPACE small LOCATION '%s'", disk.Path))
	kit.Exec(t, pool, "ALTER DATABASE postgres SET default_tablespace = small")
	pool.Reset() // connections take the setting when they begin
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	store := postgres.New(pool, postgres.Options{VacuumEvery: -1})

	queue := skein.NewQueue[[]byte]("full", skein.QueueOptions[[]byte]{Shards: 2})
	producer := skein.NewClient(store, skein.ClientOptions{})
	stored, refused := map[string]int{}, 0
	for refused < 10 {
		id := fmt.Sprint("job-", len(stored)+refused)
		data := make([]byte, 3000)
		_, _ = rand.Read(data) // it never fails
		switch err := queue.Push(t.Context(), producer, id, data); {
		case err == nil:
			stored[id] = 1
		case errors.Is(err, ports.ErrFull):
			refused++
		default:
			t.Fatalf("a push onto a disk that fills gave %v", err)
		}
	}

	var mu sync.Mutex
	handled, all := map[string]int{}, make(chan struct{})
	failed := make(chan error, 1)
	server := skein.NewServer(store,
		skein.ServerOptions{Logger: slog.New(slog.DiscardHandler), Observer: failedTurns{failed: failed}},
		queue.Handler(func(_ context.Context, id string, _ [][]byte) error {
			mu.Lock()
			defer mu.Unlock()
			if handled[id]++; handled[id] == 1 && len(handled) == len(stored) {
				close(all)
			}
			return nil
		}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	patience := time.After(testservers.Patience)
	select {
	case err := <-failed:
		if !errors.Is(err, ports.ErrFull) {
			t.Errorf("a turn on a full disk gave %v, want %v", err, ports.ErrFull)
		}
	case <-patience:
		t.Fatal("no turn has failed on a full disk")
	}
	disk.Grow(t, 400)
	select {
	case <-all:
	case <-patience:
		t.Fatal("with room on the disk not all stored jobs were handled")
	}
	stop()
	must(t, <-ended)
	if diff := cmp.Diff(stored, handled); diff != "" {
		t.Errorf("stored and handled jobs differ (-stored +handled):\n%s", diff)
	}
}

// The check of writes tries the disk that has the jobs, also in a tablespace of its own. It fails
// while that disk is full, since pushes do.
func TestPostgresTheCheckOfWritesSeesAFullDisk(t *testing.T) {
	t.Parallel()
	disk := testservers.SmallDisk(t, 12)
	pool := testservers.OwnPostgres(t, "fsync=off", "autovacuum=off")
	kit.Exec(t, pool, fmt.Sprintf("CREATE TABLESPACE small LOCATION '%s'", disk.Path))
	kit.Exec(t, pool, "ALTER DATABASE postgres SET default_tablespace = small")
	pool.Reset() // connections take the setting when they begin
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	store := postgres.New(pool, postgres.Options{})
	if row := kit.Named(kit.CheckedServers(t, store)[""], "writes"); row.Status != ports.CheckOK {
		t.Errorf("with room on the disk the row is %+v", row)
	}

	kit.Exec(t, pool,
		"CREATE TABLE filler (data text) TABLESPACE small; ALTER TABLE filler ALTER data SET STORAGE PLAIN")
	for err := error(nil); err == nil; {
		_, err = pool.Exec(t.Context(), "INSERT INTO filler SELECT repeat('x', 7900) FROM generate_series(1, 10)")
	}
	row := kit.Named(kit.CheckedServers(t, store)[""], "writes")
	if row.Status != ports.CheckFail || !row.Refuses || !strings.Contains(row.Value, "53100") ||
		!strings.Contains(row.Advice, "more disk") {
		t.Errorf("on a full disk the row is %+v", row)
	}

	disk.Grow(t, 50)
	if row := kit.Named(kit.CheckedServers(t, store)[""], "writes"); row.Status != ports.CheckOK {
		t.Errorf("with room again the row is %+v", row)
	}
}

// failedTurns reports the first turn that fails.
type failedTurns struct {
	ports.NopObserver
	failed chan<- error
}

// TurnEnd implements ports.Observer.
func (o failedTurns) TurnEnd(e ports.TurnEvent) {
	if e.Err == nil {
		return
	}
	select {
	case o.failed <- e.Err:
	default:
	}
}

// A full disk refuses pushes, by name, and lets the queue drain.
func TestPostgresFullRefusesPushesAndDrains(t *testing.T) {
	w := newWorkbench(t, time.Minute)
	w.must(w.push(w.store, "a", "b"))
	kit.Exec(t, w.pool, fmt.Sprintf(`
		CREATE FUNCTION %[1]s.full() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no room'' USING ERRCODE = ''disk_full''; END';
		CREATE TRIGGER full_disk BEFORE INSERT ON %[1]s.jobs FOR EACH ROW EXECUTE FUNCTION %[1]s.full()`, w.schema))
	err := w.push(w.store, "c", "d")
	var partial *ports.PushError
	if !errors.Is(err, ports.ErrFull) || !errors.As(err, &partial) || len(partial.Entries) != 2 {
		t.Errorf("a push onto a full disk gave %v, want ErrFull for 2 entries", err)
	}
	w.acquire("n1")
	claims := w.next(10).Claims
	w.same("claimed", idsOf(claims), []string{"a", "b"})
	w.same("skipped", w.next(10, done(claims[0]), done(claims[1])).Skipped, []int(nil))
}
