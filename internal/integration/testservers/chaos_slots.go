package testservers

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// migrated is how many keys move in one command: redis-cli's default.
const migrated = 10

// MoveSlots moves the slots of the given keys from one master of a Cluster to the next, again and
// again, until the test ends, as a resharding does: ten keys at a time while the slot belongs to
// both. Between moves it waits for as long as the last move took, plus the pause, so that each
// shard is served at least half of the time. It fails the test if a move fails, or if there was no
// move.
func MoveSlots(t testing.TB, client redis.UniversalClient, pause time.Duration, keys ...string) {
	t.Helper()
	m, err := newMover(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}

	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- m.move(stop, pause, keys) }()

	t.Cleanup(func() {
		close(stop)
		if err := <-done; err != nil {
			t.Errorf("move a slot: %v", err)
		}
		for _, n := range m.nodes {
			n.client.Close()
		}
		if m.moves == 0 {
			t.Error("no slot was moved")
		}
		t.Logf("%d slots with %d keys were moved", m.moves, m.keys)
	})
}

// mover moves slots among masters. It knows which master has which slot.
type mover struct {
	nodes []master
	owner map[int]int
	// moves and keys are how many slots and keys have moved.
	moves, keys int
}

type master struct {
	id, address string
	client      *redis.Client
}

func newMover(ctx context.Context, client redis.UniversalClient) (*mover, error) {
	ranges, err := client.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, err
	}
	m := &mover{owner: make(map[int]int)}
	for _, r := range ranges {
		node := r.Nodes[0]
		for slot := r.Start; slot <= r.End; slot++ {
			m.owner[slot] = len(m.nodes)
		}
		m.nodes = append(m.nodes, master{node.ID, node.Addr, redis.NewClient(&redis.Options{Addr: node.Addr})})
	}
	return m, nil
}

// move moves slots until it is stopped, and never leaves one half moved.
func (m *mover) move(stop <-chan struct{}, pause time.Duration, keys []string) error {
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		began := time.Now()
		err := m.moveSlot(ctx, keys[i%len(keys)])
		cancel()
		if err != nil {
			return err
		}

		select {
		case <-stop:
			return nil
		case <-time.After(pause + time.Since(began)):
		}
	}
}

func (m *mover) moveSlot(ctx context.Context, key string) error {
	n, err := m.nodes[0].client.ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return err
	}

	slot := int(n)
	from, next := m.nodes[m.owner[slot]], (m.owner[slot]+1)%len(m.nodes)
	to := m.nodes[next]

	if err := to.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.id).Err(); err != nil {
		return err
	}
	if err := from.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id).Err(); err != nil {
		return err
	}

	if err := m.moveKeys(ctx, slot, from, to); err != nil {
		return err
	}
	// The new owner learns it first, so that there is one at any time.
	for i := range m.nodes {
		node := m.nodes[(next+i)%len(m.nodes)]
		if err := node.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", to.id).Err(); err != nil {
			return fmt.Errorf("%s: %w", node.address, err)
		}
	}

	m.owner[slot] = next
	m.moves++
	return nil
}

// moveKeys moves all keys of a slot that belongs to both.
func (m *mover) moveKeys(ctx context.Context, slot int, from, to master) error {
	host, port, err := net.SplitHostPort(to.address)
	if err != nil {
		return err
	}

	for {
		keys, err := from.client.ClusterGetKeysInSlot(ctx, slot, migrated).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		const database = 0
		args := []any{"MIGRATE", host, port, "", strconv.Itoa(database), Patience.Milliseconds(), "KEYS"}
		for _, key := range keys {
			args = append(args, key)
		}
		if err := from.client.Do(ctx, args...).Err(); err != nil {
			return err
		}

		m.keys += len(keys)
	}
}
