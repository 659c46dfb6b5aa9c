package postgres_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// large returns 12 MiB that can't be compressed.
func large(seed byte) []byte {
	data := make([]byte, 12<<20)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data)
	return data
}

// The payloads of a turn or an acquire stay where they are stored until they are sent: no function
// on their way copies them into a temporary file. This session may have no such file.
func TestPostgresALargePayloadNeedsNoTemporaryFile(t *testing.T) {
	t.Parallel()
	w := workbenchOn(t, testservers.OwnPostgres(t, "fsync=off"), time.Minute)
	want := map[string][]byte{"alone": large(1), "behind": large(2)}
	push := func(id string, score float64, data []byte) {
		t.Helper()
		_, err := w.store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1,
			Entries: []core.Entry{{ID: id, Payload: core.Payload{Data: data, Score: score}}}})
		w.must(err)
	}
	push("alone", 1, want["alone"])
	push("behind", 0, []byte("small"))
	push("behind", 1, want["behind"])
	w.store = postgres.New(kit.PoolLike(t, w.pool, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["temp_file_limit"] = "0"
	}),
		postgres.Options{Schema: w.schema, NoWakeups: true})
	w.acquire("n1")
	left := map[string]bool{"alone": true, "behind": true}
	whole := func(call string, claims []core.Claim) {
		t.Helper()
		for _, c := range claims {
			if data := c.Payloads[0].Data; !bytes.Equal(data, want[c.ID]) {
				t.Errorf("%s hands out %d bytes of %q, not the 12 MiB that were pushed", call, len(data), c.ID)
			}
			delete(left, c.ID)
		}
	}
	for range 2 * len(want) {
		claims := w.next(9).Claims
		if len(claims) == 1 && string(claims[0].Payloads[0].Data) == "small" {
			w.next(0, done(claims[0]))
			continue
		}
		whole("a turn", claims)
		if len(claims) > 0 {
			w.turn.Number--
			whole("a repeated turn", w.next(9).Claims)
		}
	}
	w.same("not claimed", left, map[string]bool{})

	w.must(w.store.Release(t.Context(), w.turn.Lease))
	left = map[string]bool{"alone": true, "behind": true}
	whole("an acquire", w.acquire("n2").Claims)
	whole("a repeated acquire", w.reacquire("n2").Claims)
	for range want {
		whole("a turn that hands over", w.next(0).Orphans)
	}
	w.same("not handed over", left, map[string]bool{})
}
