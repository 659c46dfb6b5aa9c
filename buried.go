package skein

import (
	"context"

	"github.com/skeinq/skein/internal/engine"
)

// BuryReason is why payloads went to the morgue. Its String is one word.
type BuryReason = engine.BuryReason

// The reasons of [Buried].
const (
	// BuriedExhausted is a payload whose job's MaxRetries were used up.
	BuriedExhausted = engine.Exhausted
	// BuriedByHandler is a payload that a handler has buried, by [Bury] or
	// [Payload.Bury].
	BuriedByHandler = engine.ByHandler
	// BuriedUndecodable is a payload that the codec can't decode: at once, or with
	// [RetryUndecodable] after MaxRetries.
	BuriedUndecodable = engine.Undecodable
	// BuriedRecovered is a payload whose job has lost its process more often than
	// MaxRecoveries.
	BuriedRecovered = engine.Recovered
)

// Buried is what of one job went to the morgue together, for one reason.
type Buried struct {
	Queue string
	ID    string
	// Payloads are as they are stored, in order of score. Read-only.
	Payloads []RawPayload
	Reason   BuryReason
	// Error is the text that is kept with them in the morgue, and Group the group of dead letters that they are in:
	// see [ServerOptions].
	Error string
	Group string
}

// UndecodableRule is what becomes of a payload that the queue's codec can't decode.
type UndecodableRule uint8

const (
	// BuryUndecodable sends the payload to the morgue at once, by itself; the others
	// of its job run. It can be revived when the codec is mended.
	BuryUndecodable UndecodableRule = iota
	// RetryUndecodable makes it a failure of its job, which is retried with backoff;
	// after MaxRetries the payload is buried. The payloads before it run and are
	// done; those behind it wait, so the order stays. So a deploy whose codec is
	// wrong can be rolled back and loses nothing, if it had this rule already. The
	// job runs when its backoff ends, or when an operator runs it now.
	RetryUndecodable
)

// buriedHook returns an OnBuried as the engine calls it, or nil.
func buriedHook(hook func(context.Context, Buried) error, codec ErrorCodec) func(context.Context, engine.Buried) error {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, b engine.Buried) error {
		return hook(ctx, Buried{
			Queue: b.Shard.Queue, ID: b.ID, Payloads: b.Payloads, Reason: b.Reason, Error: codec.decode(b.Error), Group: b.Group,
		})
	}
}
