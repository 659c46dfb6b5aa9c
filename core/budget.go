package core

// Limits of one claim. A store takes larger requests as these.
const (
	// MaxTurnJobs is the most jobs that one turn claims or settles.
	MaxTurnJobs = 256
	// MaxTurnPayloads is the most payloads that one turn claims, and the default. It is
	// also the most that one call on a shard hands over or moves.
	MaxTurnPayloads = 1000
	// DefaultTurnBytes is how many bytes of payload a turn claims if its request
	// does not say.
	DefaultTurnBytes = 4 << 20
)

// Budget is what one turn may still claim (RULES 1). Set
// the fields, then Take the due jobs one after another. The zero value claims
// nothing.
type Budget struct {
	// Jobs is how many jobs may be claimed, at most MaxTurnJobs.
	Jobs int
	// PerJob is how many payloads of one job may be claimed. 0 is
	// MaxTurnPayloads.
	PerJob int
	// Bytes is how many bytes of payload may be claimed over all jobs, at most
	// MaxStepBytes. 0 is DefaultTurnBytes. The very first payload is always taken.
	Bytes int

	jobs, payloads, bytes int
	cut                   bool
}

// Carry counts what the turn hands over besides its claims: that much less is claimed.
func (b *Budget) Carry(claims []Claim) {
	for i := range claims {
		b.payloads += len(claims[i].Payloads)
		b.bytes += sizeOf(claims[i].Payloads)
	}
}

// Open reports whether another job may be offered to Take.
func (b *Budget) Open() bool {
	return !b.cut && b.jobs < min(b.Jobs, MaxTurnJobs)
}

// Take says how many of the next job's ordered payloads are claimed, the lowest
// first. 0 leaves the job where it is; fewer than all cut it, and nothing more
// fits after either. If the budget is not Open it is 0.
func (b *Budget) Take(payloads []Payload) int {
	if !b.Open() {
		return 0
	}
	n := 0
	for n < len(payloads) && b.fits(n, len(payloads[n].Data)) {
		b.payloads++
		b.bytes += len(payloads[n].Data)
		n++
	}
	if n > 0 {
		b.jobs++
	}
	b.cut = n < len(payloads)
	return n
}

// fits reports whether a payload of size bytes may be claimed after n others of the
// same job.
func (b *Budget) fits(n, size int) bool {
	if b.payloads == 0 {
		return true
	}
	return n < orDefault(b.PerJob, MaxTurnPayloads) &&
		b.payloads < MaxTurnPayloads &&
		b.bytes+size <= min(orDefault(b.Bytes, DefaultTurnBytes), MaxStepBytes)
}

func orDefault(v, fallback int) int {
	if v <= 0 {
		return fallback
	}
	return v
}
