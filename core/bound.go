package core

// MaxStepBytes is the most bytes of payload that one call on a shard claims, hands over
// or moves. The first that a call takes always passes, however large it is.
const MaxStepBytes = 8 << 20

// Bound is what one call may still hand over or move: MaxTurnPayloads payloads and
// MaxStepBytes of their Data, the first always. The zero value is that of a call that has
// taken nothing.
type Bound struct {
	payloads, bytes int
	full            bool
}

// Take counts and returns how many of an entry's ordered payloads fit, the lowest first.
// After fewer than all, nothing more fits. The very first payload of the call always
// does.
func (b *Bound) Take(payloads []Payload) int {
	n := 0
	for n < len(payloads) && b.fits(1, len(payloads[n].Data)) {
		b.count(1, len(payloads[n].Data))
		n++
	}
	b.full = b.full || n < len(payloads)
	return n
}

// Full reports whether something did not fit, so that nothing more does.
func (b *Bound) Full() bool { return b.full }

// TakeWhole reports whether all payloads of some lists fit, and counts them if so. After
// one that does not, nothing more fits. The first of a call always does.
func (b *Bound) TakeWhole(lists ...[]Payload) bool {
	n, bytes := 0, 0
	for _, payloads := range lists {
		n += len(payloads)
		bytes += sizeOf(payloads)
	}
	if !b.fits(n, bytes) {
		b.full = true
		return false
	}
	b.count(n, bytes)
	return true
}

// fits reports whether n payloads of so many bytes fit together.
func (b *Bound) fits(n, bytes int) bool {
	return b.payloads == 0 || !b.full && b.payloads+n <= MaxTurnPayloads && b.bytes+bytes <= MaxStepBytes
}

func (b *Bound) count(n, bytes int) {
	b.payloads += n
	b.bytes += bytes
}

func sizeOf(payloads []Payload) int {
	size := 0
	for i := range payloads {
		size += len(payloads[i].Data)
	}
	return size
}
