package core

// MaxStepBytes is the maximum number of bytes of Data that one call on a shard claims, hands over
// or moves. The first payload of a call is always within this limit, however large it is.
const MaxStepBytes = 8 << 20

// AcquireBytes is the maximum number of bytes of Data that an acquire hands over. It is small,
// since an acquire must end well before the lease's TTL, on a slow link too.
const AcquireBytes = 256 << 10

// Bound counts the payloads that one call hands over or moves: at most MaxTurnPayloads payloads and
// MaxStepBytes of their Data, but always the first payload. The zero value has counted no payload.
type Bound struct {
	// Bytes is the maximum number of bytes of Data. Values below 1 or above MaxStepBytes mean
	// MaxStepBytes.
	Bytes int
	// Strict is true if the first payload must be within Bytes too.
	Strict bool

	payloads, bytes int
	full            bool
}

// Take returns how many of an entry's ordered payloads fit, lowest first, and counts them. After an
// entry that does not fit as a whole, nothing else fits. The very first payload of the call always
// fits, unless the bound is strict.
func (b *Bound) Take(payloads []Payload) int {
	n := 0
	for n < len(payloads) && b.fits(1, len(payloads[n].Data)) {
		b.count(1, len(payloads[n].Data))
		n++
	}
	b.full = b.full || n < len(payloads)
	return n
}

// Full reports whether an entry did not fit. After that nothing else fits.
func (b *Bound) Full() bool { return b.full }

// TakeWhole reports whether all payloads of the lists fit together, and counts them if they do.
// After lists that do not fit, nothing else fits. If no payload was counted before, the lists
// always fit, unless the bound is strict.
func (b *Bound) TakeWhole(lists ...[]Payload) bool {
	n, bytes := 0, 0
	for _, payloads := range lists {
		n += len(payloads)
		bytes += payloadBytes(payloads)
	}
	if !b.fits(n, bytes) {
		b.full = true
		return false
	}
	b.count(n, bytes)
	return true
}

// TakeSettlement reports whether what a settlement moves fits, and counts it if it does: the
// payloads that it requeues and buries, which are those of back and dead, and a result, which counts
// as a payload. A settlement that moves nothing always fits.
func (b *Bound) TakeSettlement(s *Settlement, back Job, dead DeadLetter) bool {
	if s.Past != nil && len(s.Past.Result) > 0 {
		return b.TakeWhole(back.Payloads, dead.Payloads, []Payload{{Data: s.Past.Result}})
	}
	return s.Plain() || b.TakeWhole(back.Payloads, dead.Payloads)
}

// fits reports whether n payloads of the given size fit together.
func (b *Bound) fits(n, bytes int) bool {
	return b.payloads == 0 && !b.Strict ||
		!b.full && b.payloads+n <= MaxTurnPayloads &&
			b.bytes+bytes <= min(orDefault(b.Bytes, MaxStepBytes), MaxStepBytes)
}

func (b *Bound) count(n, bytes int) {
	b.payloads += n
	b.bytes += bytes
}

func payloadBytes(payloads []Payload) int {
	size := 0
	for i := range payloads {
		size += len(payloads[i].Data)
	}
	return size
}
