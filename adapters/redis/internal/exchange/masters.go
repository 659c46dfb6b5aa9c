package exchange

import (
	"context"
	"maps"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A store asks a Cluster for its masters at most mostAskings times at once. The client asks one
// server after another, in a random order, and waits for each as long as for any reply. So while
// one asking waits for a hanging server, another asking can get an answer. An asking has
// askingPatience: a client without a ReadTimeout may never return, and then other askings take its
// place.
const (
	mostAskings    = 8
	askingPatience = 2 * time.Minute
)

// ListPatience is how long a caller waits for a Cluster's server to name the masters, or for the
// one that has the list of queues, before it does without.
const ListPatience = 200 * time.Millisecond

// mastersList is the masters of a Cluster, as its servers have named them last.
type mastersList struct {
	mu   sync.Mutex
	last []goredis.UniversalClient
	// heard is set once some were named. lastBegun is the number of the asking that named them, and
	// begun that of the newest.
	heard            bool
	lastBegun, begun int
	// asking has the start times of the askings under way, by number.
	asking map[int]time.Time
	next   *namedMasters // the result for waiting callers; nil if nobody waits
}

// namedMasters is the result of an asking, once done is closed.
type namedMasters struct {
	done chan struct{}
	all  []goredis.UniversalClient
	err  error
}

// seen returns the masters that were named last. ok is false if none ever were named.
func (m *mastersList) seen() (last []goredis.UniversalClient, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.heard
}

// ask starts an asking, unless enough are under way. It returns the variable that will have the
// next answer. The asking continues even if nobody waits for it, and its result is stored.
func (m *mastersList) ask(pool workerPool, masters func() ([]goredis.UniversalClient, error)) *namedMasters {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.next == nil {
		m.next = &namedMasters{done: make(chan struct{})}
	}

	maps.DeleteFunc(m.asking, func(_ int, began time.Time) bool { return time.Since(began) > askingPatience })
	if len(m.asking) < mostAskings {
		m.begun++
		begun := m.begun
		if m.asking == nil {
			m.asking = make(map[int]time.Time)
		}
		m.asking[begun] = time.Now()
		pool.Do(func() {
			all, err := masters()
			m.hear(begun, all, err)
		})
	}
	return m.next
}

// hear takes the result of an asking. The result of an asking that began before another answered
// one is out of date and changes nothing: waiting callers have seen the newer result.
func (m *mastersList) hear(begun int, all []goredis.UniversalClient, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.asking, begun)
	if begun < m.lastBegun {
		return
	}

	if err == nil {
		m.last, m.heard, m.lastBegun = all, true, begun
	}

	if m.next != nil {
		m.next.all, m.next.err = all, err
		close(m.next.done)
		m.next = nil
	}
}

// Masters returns a client for each server that takes writes. The client of a Cluster asks any of
// its servers which these are. If that server does not answer soon, Masters returns those that
// were seen last, and if none were seen, another server is asked. The list is the store's own, and
// callers must not change it.
func (s *Link) Masters(ctx context.Context) ([]goredis.UniversalClient, error) {
	cluster, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		return []goredis.UniversalClient{s.client}, nil
	}

	seen, known := s.cluster.seen()
	again := time.NewTicker(ListPatience)
	defer again.Stop()
	for {
		named := s.cluster.ask(s.Workers, func() ([]goredis.UniversalClient, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askingPatience)
			defer cancel()
			return listMasters(ctx, cluster)
		})

		select {
		case <-named.done:
			if named.err != nil && known {
				return seen, nil
			}
			return named.all, named.err
		case <-again.C:
			if known {
				return seen, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func listMasters(ctx context.Context, cluster *goredis.ClusterClient) ([]goredis.UniversalClient, error) {
	var mu sync.Mutex
	var all []goredis.UniversalClient
	err := cluster.ForEachMaster(ctx, func(_ context.Context, master *goredis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, master)
		return nil
	})
	return all, err
}
