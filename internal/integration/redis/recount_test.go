package redis_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// Recount puts the lists of a shard right from its entries, whatever is wrong with them: members
// that are missing, superfluous, or listed with another score, in the list of those that wait or
// run though they don't.
func TestRedisRecountRepairs(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	key := func(suffix string) string { return "skein:{orders/0}:" + suffix }
	missing := func(suffix, id string) []any { return []any{"zrem", key(suffix), id} }
	wrong := func(suffix, id string) []any { return []any{"zadd", key(suffix), 7, id} }
	times := string(binary.BigEndian.AppendUint64(nil, uint64(frozenNow.UnixMicro())))
	for name, faults := range map[string][][]any{
		"nothing":                     {},
		"a retry that no list runs":   {missing("r", "failed")},
		"a retry in no list":          {missing("rt", "failed"), missing("ri", "failed"), missing("rc", "failed")},
		"a retry with another time":   {wrong("rt", "failed")},
		"a retry with another count":  {wrong("rc", "failed")},
		"a fresh job among retries":   {wrong("rt", "plain"), wrong("ri", "plain"), wrong("rc", "plain")},
		"an id that is not listed":    {missing("i", "plain")},
		"an id that is nobody's":      {wrong("i", "never"), wrong("r", "never"), wrong("w", "never"), wrong("rt", "never")},
		"a retry that is nobody's":    {wrong("ri", "never"), wrong("rc", "never")},
		"a job in no list":            {missing("r", "plain")},
		"a waiting job in no list":    {missing("w", "a")},
		"a waiting job that runs":     {missing("w", "a"), {"zadd", key("r"), frozenNow.UnixMicro(), "a"}},
		"a job that waits for nobody": {missing("r", "plain"), {"zadd", key("w"), frozenNow.UnixMicro(), "plain"}},
		"a dead letter in no list":    {missing("xt", "dead"), missing("xi", "dead")},
		"a dead letter of nobody":     {wrong("xt", "never"), wrong("xi", "never")},
		"a job that seems alone":      {{"hset", key("l"), "alone", 1}},
		"a dead letter in no group":   {missing("g:buried by hand", "dead"), wrong("g:buried by hand", "gone")},
		"a dead letter in two groups": {wrong("g:bad", "dead"), wrong("g:never", "dead"), {"hset", key("xg"), "never", "?"}},
		"a group of nobody":           {{"hset", key("xg"), "never", strings.Repeat("\x00\x01", 12)}},
		"a group that is not counted": {{"hdel", key("xg"), "bad"}},
		"a group of no number":        {{"hset", key("xg"), "bad", "?"}},
		"a group of another number":   {{"hset", key("xg"), "bad", "\x00\x00\x00\x00\x00\x00\x00\x09" + times + times}},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, client.FlushAll(t.Context()).Err())
			w := newWorker(t, client, true)
			before := allContents(t, client)
			stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			must(t, err)
			for _, fault := range faults {
				must(t, client.Do(t.Context(), fault...).Err())
			}
			damaged, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			must(t, err)
			for range 2 {
				reply, err := kit.Recounted(t.Context(), w.store, w.shard)
				must(t, err)
				if diff := cmp.Diff(damaged[0].Counts, reply.Before); diff != "" {
					t.Errorf("the counts before (-Stats +Recount):\n%s", diff)
				}
				if diff := cmp.Diff(stats[0].Counts, reply.After); diff != "" {
					t.Errorf("the counts after (-Stats +Recount):\n%s", diff)
				}
				damaged = stats
			}
			if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
				t.Errorf("what is left of the fault (-before +after):\n%s", diff)
			}
		})
	}
}
