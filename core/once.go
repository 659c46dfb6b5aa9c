package core

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Limits of the time of [Entry].OnceIn (docs/rules.md 17).
const (
	// MinOnce and MaxOnce are the limits of an OnceIn that is not 0.
	MinOnce = time.Second
	MaxOnce = 3650 * 24 * time.Hour
	// MaxOnceRemoved is the maximum number of payloads whose time has ended that one call removes
	// from what a shard remembers.
	MaxOnceRemoved = 500
)

// OnceKey names a payload of an id among those that a shard remembers (docs/rules.md 17): a hash of
// both.
type OnceKey [16]byte

// OnceKey returns the key of the entry: the first 16 bytes of the SHA-256 of the id, a NUL and the
// Data as they were pushed. stamped is true for an entry of a queue with [SamePush], whose Data
// begins with a stamp, which does not count.
func (e *Entry) OnceKey(stamped bool) (key OnceKey) {
	data := e.Data
	if stamped {
		data = data[min(stampSize, len(data)):]
	}
	h := sha256.New()
	_, _ = h.Write(append([]byte(e.ID), 0)) // a hash returns no error
	_, _ = h.Write(data)
	copy(key[:], h.Sum(nil))
	return key
}

// OnceUntil returns when the time of the entry ends if it is accepted at now.
func (e *Entry) OnceUntil(now Instant) Instant { return now.Add(e.OnceIn) }

// Repeats reports whether an entry at now is a repeat, given when the time of an equal payload that
// was accepted before ends: 0 if none is remembered.
func Repeats(until, now Instant) bool { return now < until }

// validateOnce returns [ErrInvalidTime] for an OnceIn out of range.
func validateOnce(d time.Duration) error {
	if d != 0 && (d < MinOnce || d > MaxOnce) {
		return fmt.Errorf("%w: OnceIn of %v; give %v to %v, or leave it out to accept each push",
			ErrInvalidTime, d, MinOnce, MaxOnce)
	}
	return nil
}
