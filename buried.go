package skein

import (
	"context"

	"github.com/skeinq/skein/internal/engine/report"
)

// BuryReason is the reason why payloads went to the morgue. Its String is one word: "retries",
// "handler", "codec" or "recovery".
type BuryReason = report.BuryReason

// The values of [Buried].Reason.
const (
	// BuriedExhausted is a payload whose job failed after MaxRetries retries. It prints as
	// "retries".
	BuriedExhausted = report.Exhausted
	// BuriedByHandler is a payload that a handler buried, by [Bury] or [Payload.Bury]. It prints as
	// "handler".
	BuriedByHandler = report.ByHandler
	// BuriedUndecodable is a payload that the codec can't decode. It is buried at once, or with
	// [RetryUndecodable] after MaxRetries. It prints as "codec".
	BuriedUndecodable = report.Undecodable
	// BuriedRecovered is a payload whose job lost its process more than MaxRecoveries times. It
	// prints as "recovery".
	BuriedRecovered = report.Recovered
)

// Buried is the payloads of one job that went to the morgue together, for one reason.
type Buried struct {
	// Queue and ID name the job.
	Queue string
	ID    string
	// Payloads are the stored payloads, in order of score. Read-only.
	Payloads []RawPayload
	// Reason is the reason why they were buried.
	Reason BuryReason
	// Error is the error text that the morgue keeps with the payloads. Group is the group of their
	// dead letter; see [ServerOptions].ErrorGroup.
	Error string
	Group string
}

// UndecodableRule is the treatment of a payload that the queue's codec can't decode. The zero value
// is [BuryUndecodable].
type UndecodableRule uint8

const (
	// BuryUndecodable sends only this payload to the morgue, at once. The other payloads of its job
	// run. An operator can revive the payload when the codec is fixed.
	BuryUndecodable UndecodableRule = iota
	// RetryUndecodable fails the job, which is retried with backoff. After MaxRetries the payload
	// is buried, or with [Hold] the job is held. The payloads before it run first. They are done if
	// the handler succeeds. The payloads after it wait, so the order is kept. So a deployment with
	// a wrong codec can be rolled back without loss, if it already had this rule. The job runs when
	// its backoff ends, or when an operator runs it now.
	RetryUndecodable
)

// buriedHook returns an OnBuried as the engine calls it, or nil.
func buriedHook(hook func(context.Context, Buried) error, codec ErrorCodec) func(context.Context, report.Buried) error {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, b report.Buried) error {
		return hook(ctx, Buried{
			Queue:    b.Shard.Queue,
			ID:       b.ID,
			Payloads: b.Payloads,
			Reason:   b.Reason,
			Error:    codec.decode(b.Error),
			Group:    b.Group,
		})
	}
}
