package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// transferred is a morgue of 300 ids over 7 shards, as lines: hostile ids, bytes, Metas, and one
// with more payloads than a step moves.
func transferred(t *testing.T) []byte {
	var file bytes.Buffer
	_, err := inspect.WriteDeadLetters(&file, func(yield func(core.DeadLetter, error) bool) {
		for n := range 300 {
			d := core.DeadLetter{
				ID: fmt.Sprintf("%03d/é %%{}", n), ChangedAt: core.Instant(1_700_000_000_000_000 + n), Error: "boom\n", Group: fmt.Sprint("g", n%7),
			}
			for k := range 1 + 1200*(n/299) + n%3 {
				p := core.Payload{Data: fmt.Appendf(nil, "%05d\x00\xff", k), Score: float64(k) / 3}
				if k%2 == 1 {
					p.Meta = []byte("m\xfe")
				}
				d.Payloads = append(d.Payloads, p)
			}
			if !yield(d, nil) {
				return
			}
		}
	})
	must(t, err)
	return file.Bytes()
}

// A morgue goes from store to store and is the same in each.
func TestAMorgueMovesBetweenStores(t *testing.T) {
	t.Parallel()
	redisServer := testservers.Redis(t)
	want := transferred(t)
	file := want
	for at, store := range []ports.ShardStore{
		memory.New(memory.Options{}),
		redis.New(redisServer, redis.Options{Prefix: testservers.Prefix(t, redisServer)}),
		newTxStore(t, testservers.Postgres(t)),
		memory.New(memory.Options{}),
	} {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3 + 2*at})
		must(t, err)
		i := inspect.New(store, inspect.Options{})
		for repeat := range 2 {
			r, err := i.Import(t.Context(), "orders", inspect.ReadDeadLetters(bytes.NewReader(file)), nil)
			if want := (1 - repeat) * 301; err != nil || r.Handled != want {
				t.Fatalf("store %d: Import handled %d, %v; want %d", at, r.Handled, err, want)
			}
		}
		var out bytes.Buffer
		_, err = inspect.WriteDeadLetters(io.Writer(&out), i.Export(t.Context(), "orders", inspect.ListOptions{}))
		must(t, err)
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Fatalf("store %d exports otherwise (-want +got):\n%.2000s", at, diff)
		}
		file = out.Bytes()
	}
}
