package core

// Limits of one turn. If a request asks for more, a store claims as if it asked for the limit.
const (
	// MaxTurnJobs is the maximum number of jobs that one turn claims or settles.
	MaxTurnJobs = 256
	// MaxTurnPayloads is the maximum number of payloads that one turn claims, and the default. It
	// is also the maximum number of payloads that one call on a shard hands over or moves.
	MaxTurnPayloads = 1000
	// DefaultTurnBytes is the default maximum of the bytes of Data that a turn claims.
	DefaultTurnBytes = 4 << 20
)

// Budget limits the claims of one turn (docs/rules.md 1). Set the fields, then call Take for the
// due jobs one after another. The zero value allows no claim.
type Budget struct {
	// Jobs is the maximum number of jobs to claim. Values above MaxTurnJobs mean MaxTurnJobs.
	Jobs int
	// PerJob is the maximum number of payloads to claim of one job. A value below 1 means
	// MaxTurnPayloads.
	PerJob int
	// Bytes is the maximum number of bytes of Data to claim over all jobs. Values above
	// MaxStepBytes mean MaxStepBytes, a value below 1 means DefaultTurnBytes. The very first
	// payload is always claimed, unless Carry has counted a payload.
	Bytes int

	jobs, payloads, bytes int
	cut                   bool
}

// Carry counts the payloads that the turn hands over in addition to its claims. The turn may claim
// fewer payloads and bytes by that number. Call Carry before Take.
func (b *Budget) Carry(claims []Claim) {
	for i := range claims {
		b.payloads += len(claims[i].Payloads)
		b.bytes += payloadBytes(claims[i].Payloads)
	}
}

// Open reports whether another job may be offered to Take.
func (b *Budget) Open() bool {
	return !b.cut && b.jobs < min(b.Jobs, MaxTurnJobs)
}

// Take returns how many of the next job's ordered payloads are claimed, lowest first. If the result
// is 0, the job stays queued. If it is less than all, the rest of the payloads stays queued. In
// both cases nothing else fits after that. If the budget is not Open, Take returns 0.
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

// fits reports whether a payload of size bytes may be claimed after n other payloads of the same
// job.
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
