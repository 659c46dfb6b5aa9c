package exchange

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// A call that the server has refused without running it is repeated for RetryFor. The wait between
// two tries doubles, from firstBackoff up to lastBackoff.
const (
	RetryFor     = 5 * time.Second
	firstBackoff = 2 * time.Millisecond
	lastBackoff  = 100 * time.Millisecond
)

// Failed returns the outcomes of n calls that all failed for the same reason.
func Failed(n int, err error) []Outcome {
	outcomes := make([]Outcome, n)
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

// Run sends calls until each has run or failed. Those of a large push go to each server by
// themselves, and wait while as many others are under way to that server as its share allows.
func (s *Link) Run(ctx context.Context, calls []Call) []Outcome {
	if total(calls) < largePush {
		return s.exchangeNow(ctx, calls)
	}

	outcomes := make([]Outcome, len(calls))
	var sent sync.WaitGroup
	for _, group := range s.byServer(ctx, calls) {
		sent.Go(func() {
			for k, o := range s.runShared(ctx, group) {
				outcomes[group.at[k]] = o
			}
		})
	}
	sent.Wait()
	return outcomes
}

// exchangeNow sends calls until each has run or failed.
func (s *Link) exchangeNow(ctx context.Context, calls []Call) []Outcome {
	outcomes := make([]Outcome, len(calls))
	s.exchangeBy(ctx, len(calls), newExchanging(calls, s.serversFor(ctx, calls)), func(answers []answer) {
		for _, a := range answers {
			outcomes[a.at] = a.Outcome
		}
	})
	return outcomes
}

// newExchanging returns calls that are sent together, in their order.
func newExchanging(calls []Call, servers []goredis.UniversalClient) *exchanging {
	x := &exchanging{calls: calls, at: make([]int, len(calls)), servers: servers}
	for i := range x.at {
		x.at[i] = i
	}
	return x
}

// exchangeBy sends calls until each has run or failed; most bounds how many it sends at once. A
// script that the server does not know is sent in full. A script that it refused without running
// it is sent again after a while. Each time all open calls have been sent, exchangeBy reports
// those that have run or failed.
func (s *Link) exchangeBy(ctx context.Context, most int, x *exchanging, report func([]answer)) {
	outcomes, open := make([]Outcome, len(x.calls)), make([]int, len(x.calls))
	for i := range open {
		open[i] = i
	}

	unknown := false
	var until time.Time // refused calls are repeated
	for wait := firstBackoff; len(open) > 0; wait = min(2*wait, lastBackoff) {
		for some := range slices.Chunk(open, most) {
			s.send(ctx, x.calls, some, outcomes, unknown)
			s.followMoves(ctx, x, some, outcomes)
		}

		var ended, left []int
		refused := false
		unknown = false
		for _, i := range open {
			switch err := outcomes[i].Err; {
			case goredis.HasErrorPrefix(err, "NOSCRIPT"):
				unknown, left = true, append(left, i)
			case errors.Is(err, errDropped):
				left = append(left, i)
			case Retryable(err) && (until.IsZero() || time.Now().Before(until)) && ctx.Err() == nil:
				if until.IsZero() {
					until = time.Now().Add(RetryFor)
				}
				refused, left = true, append(left, i)
			default:
				ended = append(ended, i)
			}
		}

		report(x.given(ctx, ended, outcomes))
		if open = left; refused && !sleep(ctx, wait) {
			report(x.given(ctx, open, outcomes))
			return
		}
	}
}

// given returns the outcomes of some of the calls, with their errors translated.
func (x *exchanging) given(ctx context.Context, some []int, outcomes []Outcome) []answer {
	answers := make([]answer, len(some))
	for k, i := range some {
		err := Translate(ctx, x.calls[i].Script.Locate(outcomes[i].Err))
		answers[k] = answer{x.at[i], Outcome{Value: outcomes[i].Value, Err: err}}
	}
	return answers
}

// send sends the open calls, by themselves or as a pipeline.
func (s *Link) send(ctx context.Context, calls []Call, open []int, outcomes []Outcome, full bool) {
	if s.replicas > 0 && calls[open[0]].Durable {
		s.sendDurably(ctx, calls, open, outcomes, full)
		return
	}
	if callBytes(calls, open) < largePush || !s.sendLarge(ctx, calls, open, outcomes, full) {
		sendBy(ctx, s.client, calls, open, outcomes, full)
	}
}

// sender is a client, or a connection of one.
type sender interface {
	Process(ctx context.Context, cmd goredis.Cmder) error
	Pipeline() goredis.Pipeliner
}

func sendBy(ctx context.Context, by sender, calls []Call, open []int, outcomes []Outcome, full bool) {
	cmds := make([]*goredis.Cmd, len(open))
	var pipe goredis.Pipeliner
	if len(open) > 1 {
		pipe = by.Pipeline()
	}

	for k, i := range open {
		cmds[k] = command(ctx, &calls[i], full)
		if pipe != nil {
			_ = pipe.Process(ctx, calls[i].cmder(cmds[k]))
		} else {
			_ = by.Process(ctx, calls[i].cmder(cmds[k]))
		}
	}
	if pipe != nil {
		_, _ = pipe.Exec(ctx)
	}

	for k, i := range open {
		outcomes[i].Value, outcomes[i].Err = cmds[k].Result()
	}
}

// RunOn runs a call on the given server, and again while the server refuses it without running it.
func RunOn(ctx context.Context, server sender, c Call) (any, error) {
	full := false
	for wait, until := firstBackoff, time.Now().Add(RetryFor); ; wait = min(2*wait, lastBackoff) {
		cmd := command(ctx, &c, full)
		err := server.Process(ctx, cmd)
		if goredis.HasErrorPrefix(err, "NOSCRIPT") && !full {
			full = true
		} else if errors.Is(err, errDropped) {
			continue
		} else if !Retryable(err) || time.Now().After(until) || !sleep(ctx, wait) {
			return cmd.Val(), Translate(ctx, c.Script.Locate(cmd.Err()))
		}
	}
}

// Ask runs a plain command that reads one key, and returns the zero value if that key does not
// exist. It returns when the context ends, whatever the server does.
func Ask[T any](ctx context.Context, s *Link, cmd interface {
	goredis.Cmder
	Result() (T, error)
}) (T, error) {
	type answer struct {
		value T
		err   error
	}

	a, err := Await(ctx, s, func() answer {
		_ = s.client.Process(ctx, ofOneServer(goredis.Cmder(cmd))) // the command has the error too
		value, err := cmd.Result()
		if errors.Is(err, goredis.Nil) {
			return answer{}
		}
		s.NoteMoves(ctx, err)
		return answer{value, Translate(ctx, err)}
	})
	return a.value, cmp.Or(err, a.err)
}

// Transact runs plain commands that read as one transaction. It returns their replies, or the first
// error as the client has it.
func (s *Link) Transact(ctx context.Context, calls []Call) (replies []any, err error) {
	pipe := s.client.TxPipeline()
	for i := range calls {
		_ = pipe.Process(ctx, command(ctx, &calls[i], false))
	}
	cmds, err := pipe.Exec(ctx)
	replies = make([]any, len(calls))
	for i, cmd := range cmds {
		err = cmp.Or(err, cmd.Err())
		replies[i] = cmd.(*goredis.Cmd).Val()
	}
	return replies, err
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// retryablePrefixes are the beginnings of errors with which a server refuses a script before it
// has written anything: it restarts or fails over, a slot moves, it has too few replicas, can't
// write to its disk, or is busy with another script. The client follows MOVED and ASK, but only
// for a while.
var retryablePrefixes = []string{"TRYAGAIN", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MOVED", "ASK",
	"NOREPLICAS", "MISCONF", "BUSY "}

// notLocal is in the error of a script that requested a key which has moved to another server. The
// store's scripts read before they write, so they have not written.
const notLocal = "access a non local key"

// Retryable reports whether an error is a refusal of a call that was not run.
func Retryable(err error) bool {
	if err == nil {
		return false
	}
	for _, prefix := range retryablePrefixes {
		if goredis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return strings.Contains(err.Error(), notLocal)
}
