package engine

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
)

// buffer holds the claimed jobs of a shard that have not started, in the order of their claims. It
// never writes to slices that a store returned.
type buffer struct {
	chunks []chunk
	first  int
	jobs   int
}

// chunk is the rest of one turn's claims.
type chunk struct {
	claims []core.Claim
	since  time.Time
}

// push appends the claims of a turn.
func (b *buffer) push(claims []core.Claim, now time.Time) {
	if len(claims) == 0 {
		return
	}
	if b.first > len(b.chunks)/2 {
		n := copy(b.chunks, b.chunks[b.first:])
		clear(b.chunks[n:])
		b.chunks, b.first = b.chunks[:n], 0
	}
	b.chunks = append(b.chunks, chunk{claims, now})
	b.jobs += len(claims)
}

// head returns the first job, or nil.
func (b *buffer) head() *core.Claim {
	if b.jobs == 0 {
		return nil
	}
	return &b.chunks[b.first].claims[0]
}

// oldest returns when the first job was claimed. ok is false if the buffer is empty.
func (b *buffer) oldest() (time.Time, bool) {
	if b.jobs == 0 {
		return time.Time{}, false
	}
	return b.chunks[b.first].since, true
}

// take removes and returns up to n of the first jobs.
func (b *buffer) take(n int) []core.Claim {
	n = min(n, b.jobs)
	if n == 0 {
		return nil
	}
	if len(b.chunks[b.first].claims) >= n {
		return b.takeFromFirst(n)
	}
	taken := make([]core.Claim, 0, n)
	for len(taken) < n {
		taken = append(taken, b.takeFromFirst(n-len(taken))...)
	}
	return taken
}

// takeFromFirst removes up to n jobs of the first chunk. The buffer must not be empty.
func (b *buffer) takeFromFirst(n int) []core.Claim {
	c := &b.chunks[b.first]
	n = min(n, len(c.claims))
	taken := c.claims[:n:n]
	c.claims = c.claims[n:]
	b.jobs -= n
	if len(c.claims) == 0 {
		*c = chunk{}
		b.first++
	}
	return taken
}

// leading counts the first jobs, up to n, until ok returns false.
func (b *buffer) leading(n int, ok func(*core.Claim) bool) int {
	count := 0
	for at := b.first; at < len(b.chunks); at++ {
		for i := range b.chunks[at].claims {
			if count == n || !ok(&b.chunks[at].claims[i]) {
				return count
			}
			count++
		}
	}
	return count
}

// remove removes one claim, wherever it is. ok is false if the claim is not in the buffer.
func (b *buffer) remove(id string, receipt core.Receipt) (core.Claim, bool) {
	for at := b.first; at < len(b.chunks); at++ {
		c := &b.chunks[at]
		i := slices.IndexFunc(c.claims, func(c core.Claim) bool { return c.ID == id && c.Receipt == receipt })
		if i < 0 {
			continue
		}

		found := c.claims[i]
		c.claims = slices.Concat(c.claims[:i], c.claims[i+1:])
		b.jobs--
		if len(c.claims) == 0 {
			b.chunks = slices.Delete(b.chunks, at, at+1)
		}
		return found, true
	}
	return core.Claim{}, false
}
