package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/ports/storekit"
)

// Limits of the exchanges of small pushes. A server runs one script at a time, and pushes that wait
// for the one under way take less of it. Behind a slow network or a silent connection others follow.
const (
	pushesUnderWay = 1
	pushesAtMost   = 4
	pushPatience   = time.Millisecond
	pushesTogether = 64
	bytesTogether  = 256 << 10
)

// oneServer is the key of all small pushes: they go to one server.
type oneServer struct{}

// smallPushes are the exchanges of small pushes. A reply is the value that a push script returns.
type smallPushes = storekit.SharedExchanges[oneServer, exchange.Call, any]

func (s *Store) newSmallPushes() *smallPushes {
	return &smallPushes{
		Alone:    s.run,
		Together: s.pushTogether,
		UnderWay: pushesUnderWay,
		AtMost:   pushesAtMost,
		Patience: pushPatience,
		Most:     pushesTogether,
		Bytes:    bytesTogether,
	}
}

// runSmall is run for a small push, which goes together with others that wait at the same time.
func (s *Store) runSmall(ctx context.Context, c exchange.Call) exchange.Outcome {
	if err := s.ready(ctx); err != nil {
		return exchange.Outcome{Err: err}
	}

	began := time.Now()
	value, err := s.small.Do(ctx, oneServer{}, c.Size, c)
	if err != nil && err == ctx.Err() { // it ended while the push waited
		err = s.link.GaveUp(ctx, began)
	}
	return exchange.Outcome{Value: value, Err: err}
}

// pushTogether sends pushes in one exchange. One script carries out the usual ones. The others, and
// those for which the script writes nothing, have their own scripts.
func (s *Store) pushTogether(ctx context.Context, _ oneServer, calls []exchange.Call) []storekit.SharedOutcome[any] {
	outcomes := make([]storekit.SharedOutcome[any], len(calls))
	for open := s.usualPushes(calls); len(open) > 0; {
		var next []joinedPushes
		sent := make([]exchange.Call, len(open))
		for i := range open {
			sent[i] = open[i].call
		}

		for i, o := range s.link.SendSmall(ctx, sent) {
			unusual, err := open[i].read(&o, outcomes)
			if exchange.OtherSlot(err) {
				s.apartBySlot.Store(true)
			}
			for _, at := range unusual {
				next = append(next, onePush(calls, at))
			}
		}
		open = next
	}
	return outcomes
}

// joinedPushes is one call for several pushes, given by their positions.
type joinedPushes struct {
	call exchange.Call
	at   []int
}

// onePush returns the push at a position with its own call.
func onePush(calls []exchange.Call, at int) joinedPushes {
	return joinedPushes{call: calls[at], at: []int{at}}
}

// Positions of the arguments of a push.
const (
	argNow = iota
	argLayout
	argTerms
	argEntries
)

// isUsual reports whether push_together.lua may carry out a push.
func isUsual(c *exchange.Call) bool { return c.Entries == 1 && len(c.Args[argTerms].([]byte)) == 0 }

// shardOfPush is a shard, by the name of its record, with the layout that pushes name.
type shardOfPush struct{ meta, layout string }

// usualPushes joins the usual pushes of calls: all of them, or those of each shard once a server has
// refused keys of several slots.
func (s *Store) usualPushes(calls []exchange.Call) []joinedPushes {
	var all []joinedPushes
	var shards []shardOfPush
	byShard := make(map[shardOfPush][]int)
	for i := range calls {
		if !isUsual(&calls[i]) {
			all = append(all, onePush(calls, i))
			continue
		}
		shard := shardOfPush{calls[i].Keys[0].(string), calls[i].Args[argLayout].(string)}
		if byShard[shard] == nil {
			shards = append(shards, shard)
		}
		byShard[shard] = append(byShard[shard], i)
	}

	if !s.apartBySlot.Load() {
		return appendJoined(all, calls, shards, byShard)
	}
	for i := range shards {
		all = appendJoined(all, calls, shards[i:i+1], byShard)
	}
	return all
}

// appendJoined appends one call for all pushes of the given shards.
func appendJoined(
	all []joinedPushes,
	calls []exchange.Call,
	shards []shardOfPush,
	byShard map[shardOfPush][]int,
) []joinedPushes {
	if len(shards) == 0 {
		return all
	}
	if at := byShard[shards[0]]; len(shards) == 1 && len(at) == 1 {
		return append(all, onePush(calls, at[0]))
	}

	j := joinedPushes{call: exchange.Call{
		Script:  pushTogetherScript,
		Keys:    make([]any, 0, 4*len(shards)),
		Args:    make([]any, 1, 1+2*len(shards)+2*len(calls)),
		NoRetry: true,
		Durable: true,
	}}
	for _, shard := range shards {
		at := byShard[shard]
		j.call.Keys = append(j.call.Keys, calls[at[0]].Keys...)
		j.call.Args = append(j.call.Args, shard.layout, strconv.Itoa(len(at)))
		for _, i := range at {
			j.call.Args[0] = calls[i].Args[argNow]
			j.call.Args = append(j.call.Args, calls[i].Args[argEntries:]...)
			j.call.Size += calls[i].Size
			j.call.Entries++
		}
		j.at = append(j.at, at...)
	}
	return append(all, j)
}

// read reads the outcome of a call for the pushes. It returns the positions of those that are
// unusual, and the error with which the call was refused.
func (j *joinedPushes) read(o *exchange.Outcome, outcomes []storekit.SharedOutcome[any]) (unusual []int, err error) {
	_, damaged := errors.AsType[*exchange.DamagedError](o.Err) // run sets the record aside
	refused := damaged || exchange.Refused(o.Err)
	if o.Err != nil || j.call.Script != pushTogetherScript {
		for _, at := range j.at {
			outcomes[at] = storekit.SharedOutcome[any]{Reply: o.Value, Err: o.Err, Refused: refused}
		}
		return nil, o.Err
	}

	if now, all := o.Value.(int64); all {
		for _, at := range j.at {
			outcomes[at].Reply = now
		}
		return nil, nil
	}

	reply := record.ReplyOf(o.Value)
	now := reply.Int()
	for _, at := range j.at {
		if reply.Int() == 1 {
			outcomes[at].Reply = now
		} else {
			unusual = append(unusual, at)
		}
	}
	if err := reply.Err(); err != nil {
		for _, at := range j.at {
			outcomes[at] = storekit.SharedOutcome[any]{Err: err}
		}
		return nil, err
	}
	return unusual, nil
}
