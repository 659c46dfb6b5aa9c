package skein_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/internal/tier"
)

// fairness is two tenants on one server of 20 lanes whose handler takes 10 ms: one has many ids, all
// due at once, and then the other one pushes ten. waits are how long these waited for their start.
type fairness struct {
	mu     sync.Mutex
	pushed time.Time
	waits  []time.Duration
	big    int
}

// shares lets each tenant push some jobs a second ahead of what others have pushed before.
type shares struct {
	most int
	mu   sync.Mutex
	from time.Time
	used map[string]int
}

// options returns the options of a tenant's next push. It returns none for nil.
func (s *shares) options(tenant string, now time.Time) []skein.PushOption {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.from) >= time.Second {
		s.from, s.used = now, make(map[string]int)
	}
	if s.used[tenant]++; s.used[tenant] > s.most {
		return nil
	}
	return []skein.PushOption{skein.Urgent(10 * time.Minute)}
}

const smallTenant = "small-"

func (f *fairness) handle(_ context.Context, id string, _ []string) error {
	f.mu.Lock()
	if strings.HasPrefix(id, smallTenant) {
		f.waits = append(f.waits, time.Since(f.pushed))
	} else {
		f.big++
	}
	f.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return nil
}

// entries are n ids of a tenant.
func tenantsEntries(tenant string, n int) (entries []skein.Entry[string]) {
	for i := range n {
		entries = append(entries, skein.Entry[string]{ID: fmt.Sprint(tenant, i), Payload: "x"})
	}
	return entries
}

// run returns the longest wait of the small tenant.
func (f *fairness) run(t *testing.T, ids int, way string) time.Duration {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	var queue skein.QueueOptions[string]
	if way == "rate" {
		queue.RateBy = func(id, _ string) (string, skein.Rate) {
			tenant, _, _ := strings.Cut(id, "-")
			return tenant, skein.Rate{Count: 100, Per: time.Second}
		}
	}
	bigs := skein.NewQueue("jobs", queue)
	smalls, options := bigs, []skein.PushOption{}
	var share *shares
	o := skein.ServerOptions{Lanes: 20, LeaseTTL: time.Minute}
	handlers := []skein.Handler{bigs.Handler(f.handle)}
	switch way {
	case "urgent":
		options = append(options, skein.Urgent(10*time.Minute))
	case "share":
		share = &shares{most: 100}
	case "queue":
		smalls = skein.NewQueue("jobs-small", skein.QueueOptions[string]{})
		o.Scheduler = skein.WeightedBy(nil)
		handlers = append(handlers, smalls.Handler(f.handle))
	case "lag":
		smalls = skein.NewQueue("jobs-small", skein.QueueOptions[string]{})
		handlers = append(handlers, smalls.Handler(f.handle))
	}

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range tenantsEntries("big-", ids) {
		must(bigs.Push(t.Context(), client, e.ID, e.Payload, share.options("big", time.Now())...))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := skein.NewServer(store, o, handlers...)
	go func() { ended <- server.Run(ctx) }()
	time.Sleep(time.Second)

	f.pushed = time.Now()
	for _, e := range tenantsEntries(smallTenant, 10) {
		options := append(options, share.options("small", time.Now())...)
		must(smalls.Push(t.Context(), client, e.ID, e.Payload, options...))
	}
	for start := time.Now(); time.Since(start) < time.Hour; time.Sleep(time.Second) {
		f.mu.Lock()
		done := len(f.waits) == 10 && f.big == ids
		f.mu.Unlock()
		if done {
			break
		}
	}
	stop()
	must(<-ended)
	if len(f.waits) != 10 || f.big != ids {
		t.Fatalf("%d jobs of the small tenant ran, and %d of the big one", len(f.waits), f.big)
	}
	return slices.Max(f.waits)
}

// TestASmallTenantBesideABigOne has the figures of docs/guide/fairness.md.
func TestASmallTenantBesideABigOne(t *testing.T) {
	ids := tier.Count(10_000, 100_000)
	all := time.Duration(ids) * 10 * time.Millisecond / 20
	for _, c := range []struct {
		way      string
		from, to time.Duration
	}{
		{"one queue", all - 2*time.Second, all},
		{"urgent", 0, 500 * time.Millisecond},
		{"share", 0, 500 * time.Millisecond},
		{"rate", 0, 500 * time.Millisecond},
		{"queue", 0, 500 * time.Millisecond},
		{"lag", all - 2*time.Second, all},
	} {
		t.Run(c.way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f fairness
				wait := f.run(t, ids, c.way)
				t.Logf("of %d ids of the big tenant, the small one waits %v", ids, wait)
				if wait < c.from || wait > c.to {
					t.Errorf("the small tenant waits %v, want %v to %v", wait, c.from, c.to)
				}
			})
		})
	}
}
