package skein

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// BuryReason is why payloads went to the morgue. String is the reason in a word.
type BuryReason = engine.BuryReason

// The reasons that OnBuried is told.
const (
	// BuriedExhausted is a payload whose job's MaxRetries were used up.
	BuriedExhausted = engine.Exhausted
	// BuriedByHandler is what Bury, of a job or of a payload, sent there.
	BuriedByHandler = engine.ByHandler
	// BuriedUndecodable is a payload that its codec refuses: at once, or with
	// RetryUndecodable after MaxRetries.
	BuriedUndecodable = engine.Undecodable
	// BuriedRecovered is a payload whose job has lost its process more often than
	// MaxRecoveries.
	BuriedRecovered = engine.Recovered
)

// Buried is what went to the morgue of one job at once for one reason.
type Buried struct {
	Queue string
	ID    string
	// Payloads are as they are stored, in order of score. Read-only.
	Payloads []core.Payload
	Reason   BuryReason
	// Error is the text that the morgue keeps with them.
	Error string
}

// UndecodableRule is what becomes of a payload that the queue's codec refuses.
type UndecodableRule uint8

const (
	// BuryUndecodable sends it to the morgue at once, by itself; the other payloads
	// of its job run. From there it can be revived once the codec is mended.
	BuryUndecodable UndecodableRule = iota
	// RetryUndecodable makes it a failure of its job, which is retried with backoff
	// until MaxRetries are used up, and then buried. What is before the payload
	// runs and is done; what is behind it waits, so the order stays. So a deploy
	// whose codec is wrong can be rolled back and loses nothing, if it had this rule
	// already. What was refused runs when its backoff ends, or when an operator runs it now.
	RetryUndecodable
)

// onBuried is the hook as the engine calls it, or nil.
func (s *Server) onBuried() func(context.Context, engine.Buried) error {
	hook, codec := s.options.OnBuried, s.options.ErrorCodec
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, b engine.Buried) error {
		return hook(ctx, Buried{
			Queue: b.Shard.Queue, ID: b.ID, Payloads: b.Payloads, Reason: b.Reason, Error: codec.decode(b.Error),
		})
	}
}
