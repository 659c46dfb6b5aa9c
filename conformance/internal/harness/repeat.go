package harness

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Repeating returns a handle that repeats each call of unknown outcome until the outcome is known,
// as package ports allows, and counts the repeats for [CountRepeats]. It does not repeat Ping, nor
// Settle and SettlePayload, which callers must not repeat.
func Repeating(store ports.ShardStore) ports.ShardStore {
	return storekit.Intercept(store,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			switch call.Method {
			case "Ping", "Settle", "SettlePayload":
				return next(ctx)
			case "Wakeups":
				wakeups, err := keepSubscribed(ctx, store.(ports.Notifier), *call.Request.(*[]core.Shard))
				*call.Reply.(*<-chan core.Shard) = wakeups
				return err
			}

			return repeat(func() error { return cmp.Or(next(ctx), unreached(call)) }, func() {
				count(ctx, call.Method)
				MarkResent(call)
			})
		})
}

// errUnreached is the outcome of a read that has not reached all of its shards.
var errUnreached = errors.New("some shards were not reached")

// unreached returns an error of unknown outcome for a call that must be repeated because its reply
// is incomplete.
func unreached(call storekit.Call) error {
	missing := 0
	switch reply := call.Reply.(type) {
	case *ports.HeadsReply:
		missing = len(reply.Unreached)
	case *[]ports.QueueStats:
		for i := range *reply {
			missing += len((*reply)[i].Unreached)
		}
	case *ports.JobsPage:
		missing = len(reply.Unreached)
	case *ports.ClaimedPage:
		missing = len(reply.Unreached)
	case *ports.PastPage:
		missing = len(reply.Unreached)
	case *ports.MorguePage:
		missing = len(reply.Unreached)
	case *ports.GroupsReply:
		missing = len(reply.Unreached)
	case *ports.TicksReply:
		missing = len(reply.Unreached)
	case *ports.SchedulesPage:
		missing = len(reply.Unreached)
	case *ports.ScheduleNamesPage:
		missing = len(reply.Unreached)
	case *ports.QuarantinedShards:
		missing = len(reply.Unreached)
	}

	if missing > 0 {
		return errUnreached
	}
	return nil
}

// MarkResent marks a call that is about to be repeated as a repeat, as a turn requires.
func MarkResent(call storekit.Call) {
	if turn, ok := call.Request.(*ports.TurnRequest); ok {
		turn.Resent = true
	}
}

// Repeats counts repeated calls.
type Repeats struct {
	// All counts the repeated calls of all methods.
	All atomic.Int64
	// Lossy counts the repeated calls whose repeat may report less than the first call: what a turn
	// skipped, what an operator's step handled, what a take was granted, or what was there before.
	Lossy atomic.Int64

	parent *Repeats
}

type repeatsKey struct{}

// CountRepeats returns a context. Calls with the context on handles of [Repeating] count their
// repeats, also for the parent context if that counts too.
func CountRepeats(parent context.Context) (context.Context, *Repeats) {
	r := &Repeats{}
	r.parent, _ = parent.Value(repeatsKey{}).(*Repeats)
	return context.WithValue(parent, repeatsKey{}, r), r
}

// count counts a repeated call of the method.
func count(ctx context.Context, method string) {
	r, _ := ctx.Value(repeatsKey{}).(*Repeats)
	for ; r != nil; r = r.parent {
		r.All.Add(1)
		switch method {
		case "Turn", "Expedite", "Bury", "Delete", "Cancel", "Revive", "Purge", "Edit", "Import", "Forget", "Recount",
			"Discard", "ChangeSchedules", "Take":
			r.Lossy.Add(1)
		}
	}
}

// A call is repeated up to maxRepeats times. The wait before a repeat doubles from firstPause to
// maxPause. On a busy machine a large call may take a hundred repeats if its connection is cut
// again and again. A store whose calls all fail at once fails within half a minute.
const (
	maxRepeats = 400
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// repeat makes the call until its outcome is known, or maxRepeats times. It calls before ahead of
// each repeat.
func repeat(call func() error, before func()) error {
	err := call()
	pause := firstPause
	for n := 0; n < maxRepeats && unknown(err); n++ {
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
		before()
		err = call()
	}
	return err
}

// ErrNoReply is an error of unknown outcome.
var ErrNoReply = errors.New("the connection broke")

// unknown reports whether an error leaves the outcome open, and is not the error of the caller's
// context.
func unknown(err error) bool {
	return ClassOf(err).Unknown && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
