package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// pushBytes pushes payloads of the given size, of two ids by turns.
func (w *world) pushBytes(payloads, size int) {
	w.Helper()
	var entries []core.Entry
	for i := range payloads {
		entries = append(entries, core.Entry{ID: fmt.Sprintf("job-%d", i%2), Payload: core.Payload{
			Data: append(bytes.Repeat([]byte("x"), size-1), byte(i)), Score: float64(i),
		}})
	}
	w.pushEntries(entries...)
}

// Payloads that take longer than the lease's TTL to read are handled all the same: a turn that was
// called off gets twice the time when it is repeated, and the lease stays. Claims carry less after
// that.
func TestPayloadsThatTakeLongerThanTheTTLAreHandled(t *testing.T) {
	for _, seconds := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d s a payload", seconds), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const size, payloads, short = 1 << 20, 4, 2 * time.Second
				handled := make(map[byte]int)
				w.declare(1)
				w.pushBytes(payloads, size)

				n := w.start(each(func(_ context.Context, c *core.Claim) error {
					for i := range c.Payloads {
						handled[c.Payloads[i].Data[size-1]]++
					}
					return nil
				}), lanes(1), func(s *setup) { s.LeaseTTL, s.link.rate = short, size/seconds })

				// The calls of a turn take less than four times what its reply takes.
				w.sleep(payloads * 4 * time.Duration(seconds) * time.Second)
				for i := range byte(payloads) {
					if handled[i] != 1 {
						w.Errorf("payload %d was handled %d times, want once", i, handled[i])
					}
				}

				if got := n.link.count("Acquire"); got != 1 {
					w.Errorf("the shard was acquired %d times, want once; the log:\n%v", got, n.log)
				}

				var carried []int
				for _, turn := range n.link.turnsSent() {
					if got := bytesOf(&turn.reply); got > 0 {
						carried = append(carried, got/size)
					}
				}
				// job-0 has two of the payloads. A claim of both is slow, so the next ones take one.
				if want := []int{2, 1, 1}; !slices.Equal(carried, want) {
					w.Errorf("turns carried %v payloads, want %v", carried, want)
				}
			})
		})
	}
}

// What a dead server had claimed is handed over in parts that arrive, and no job that no handler
// has seen is buried.
func TestOrphansThatTakeLongerThanTheTTLAreHandled(t *testing.T) {
	for _, n := range []int{1, 20} {
		t.Run(fmt.Sprintf("%d lanes", n), func(t *testing.T) {
			inWorld(t, func(w *world) { w.handleLargeOrphans(n) })
		})
	}
}

// handleLargeOrphans lets a server with the given number of lanes recover jobs behind a slow link.
func (w *world) handleLargeOrphans(most int) {
	const size, jobs, short = 1 << 20, 8, 2 * time.Second
	handled := make(map[string]int)
	w.declare(1)
	for i := range jobs {
		w.pushEntries(core.Entry{
			ID:      fmt.Sprintf("job-%d", i),
			Payload: core.Payload{Data: bytes.Repeat([]byte("x"), size)},
		})
	}
	w.leaveClaimed()
	n := w.start(each(func(_ context.Context, c *core.Claim) error {
		handled[c.ID]++
		return nil
	}), lanes(most), sharing, func(s *setup) { s.LeaseTTL, s.link.rate = short, size/5 })
	w.sleep(10 * time.Minute)
	w.wantCounts(0, 0, jobs, 0)
	for i := range jobs {
		if id := fmt.Sprintf("job-%d", i); handled[id] != 1 {
			w.Errorf("%s was handled %d times, want once", id, handled[id])
		}
	}
	// The first lease asks for as much as a claim may carry, and the second for what arrives.
	if got := n.link.count("Acquire"); got != 2 {
		w.Errorf("the shard was acquired %d times, want twice; the log:\n%v", got, n.log)
	}
}
