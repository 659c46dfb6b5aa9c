package shop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/cmd/skein/internal/shop"
	"github.com/skeinq/skein/inspect"
)

func TestTheShopHasADayBehindItAndOneTroubleOfEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, err := shop.Open(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(5 * time.Second) // for as long as a reader waits

		l := look(ctx, t, inspect.New(s.Store(), inspect.Options{}))
		for what, is := range map[string]bool{
			"orders fail and are retried":       l.queue("orders").Retrying > 0 && l.queue("orders").Lag < time.Second,
			"emails die":                        l.queue("emails").Dead > 100,
			"emails die of two things":          len(l.groups) == 2,
			"a shard of search is behind":       l.shard("search") > 5*time.Minute,
			"most of search is not":             l.behind("search") < 20,
			"thumbnails are late":               l.queue("thumbnails").Lag > 10*time.Minute && l.queue("thumbnails").Processed > 0,
			"exports don't move":                l.queue("exports").Fresh > 10 && l.queue("exports").Claimed == 1 && l.queue("exports").Processed == 0,
			"invoices are paused":               l.paused("invoices") && l.queue("invoices").Fresh >= 40,
			"nobody serves reports":             !l.served("reports") && l.queue("reports").Fresh == 10,
			"who served them died":              l.queue("reports").Orphaned == 2 && l.states["gone"] == 1,
			"three servers, not all of a kind":  l.states["alive"] == 3 && len(l.versions) == 2,
			"a day of orders was counted":       len(l.history) > 1400,
			"a month of orders was counted":     len(l.days) > inspect.DaysKept-1,
			"something is scheduled":            l.scheduled > 50,
			"an order is at its last retry":     l.atLast == 1,
			"mails that were sent have records": l.records > 0,
		} {
			if !is {
				t.Errorf("not so: %s", what)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// looked is an inspector's view of the shop.
type looked struct {
	stats     map[string]inspect.QueueStats
	nodes     []inspect.Node
	states    map[string]int
	versions  map[string]bool
	groups    []inspect.Group
	history   []inspect.MinuteStats
	days      []inspect.MinuteStats
	scheduled int
	atLast    int
	records   int // of sent mails, with results
}

func look(ctx context.Context, t *testing.T, i *inspect.Inspector) looked {
	t.Helper()
	l := looked{
		stats:    map[string]inspect.QueueStats{},
		states:   map[string]int{},
		versions: map[string]bool{},
	}
	stats, err := i.Stats(ctx)
	must(t, err)
	for _, one := range stats {
		l.stats[one.Queue.Name] = one
	}

	l.nodes, err = i.Nodes(ctx)
	must(t, err)
	for _, n := range l.nodes {
		l.states[n.State.String()]++
		l.versions[n.Version] = true
	}

	groups, err := i.Groups(ctx, "emails", 10)
	must(t, err)
	l.groups = groups.Groups

	l.history, err = i.History(ctx, "orders", inspect.HistoryOptions{})
	must(t, err)
	l.days, err = i.History(ctx, "orders", inspect.HistoryOptions{Step: inspect.Day})
	must(t, err)

	for j, err := range i.Jobs(ctx, "emails", inspect.ListOptions{Fresh: true}) {
		must(t, err)
		if j.PerformAt.After(time.Now()) {
			l.scheduled++
		}
	}

	for _, err := range i.Jobs(ctx, "orders", inspect.ListOptions{
		SortBy:      inspect.RetryingByCount,
		FromRetries: skein.DefaultMaxRetries,
	}) {
		must(t, err)
		l.atLast++
	}

	for past, err := range i.Past(ctx, "emails", inspect.PastOptions{}) {
		must(t, err)
		if past.ResultBytes > 0 {
			l.records++
		}
	}
	return l
}

func (l looked) queue(name string) inspect.Counts { return l.stats[name].Counts }
func (l looked) paused(name string) bool          { return l.stats[name].Queue.Paused }

// shard returns the longest lag of a shard, and behind how many shards have one that somebody
// would notice.
func (l looked) shard(queue string) (longest time.Duration) {
	for _, s := range l.stats[queue].Shards {
		longest = max(longest, s.Lag)
	}
	return longest
}

func (l looked) behind(queue string) (shards int) {
	for _, s := range l.stats[queue].Shards {
		if s.Lag > time.Second {
			shards++
		}
	}
	return shards
}

func (l looked) served(queue string) bool {
	for _, n := range l.nodes {
		for _, q := range n.Queues {
			if q == queue && n.State.String() == "alive" {
				return true
			}
		}
	}
	return false
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
