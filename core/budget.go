package core

// Limits of one claim. A store treats larger requests as if they were at the limit.
const (
	// MaxTurnJobs is the maximum number of jobs that one turn claims or settles.
	MaxTurnJobs = 256
	// MaxTurnPayloads is the maximum number of payloads that one turn claims, and the default. It
	// is also the maximum that one call on a shard hands over or moves.
	MaxTurnPayloads = 1000
	// DefaultTurnBytes is the default limit of the bytes of payload that a turn claims.
	DefaultTurnBytes = 4 << 20
)

// Budget is what one turn may still claim (docs/rules.md 1). Set the fields, then call Take for the
// due jobs one after another. The zero value claims no job.
type Budget struct {
	// Jobs is the number of jobs that may be claimed, at most MaxTurnJobs.
	Jobs int
	// PerJob is the number of payloads of one job that may be claimed. 0 means MaxTurnPayloads.
	PerJob int
	// Bytes is the number of bytes of payload that may be claimed over all jobs, at most
	// MaxStepBytes. 0 means DefaultTurnBytes. The very first payload is always taken.
	Bytes int

	jobs, payloads, bytes int
	cut                   bool
}

// Carry counts the payloads that the turn hands over in addition to its claims. The budget for
// claims shrinks by them.
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

// Take returns how many of the next job's ordered payloads are claimed, lowest first. 0 leaves the
// job queued. Fewer than all split the job. After either, nothing else fits. If the budget is not
// Open, Take returns 0.
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
