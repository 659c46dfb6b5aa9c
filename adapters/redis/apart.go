package redis

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var errStraggler = errors.New("redis: no answer long after another server's, or another call's")

// How calls for each server by themselves are sent, and how long they wait.
type apart struct {
	// most is the most calls of one exchange.
	most int
	// patience is how long a server may take when another has answered, and how long calls are
	// repeated that a server refuses, as for a slot that moves, when it has answered the others.
	patience time.Duration
}

// How what is looked at is read: plain commands, of which a server answers others in between, and
// scripts. Who looks waits less for a server than who works.
var (
	plainApart  = apart{most: 1000, patience: lookPatience}
	scriptApart = apart{most: shardsPerExchange, patience: lookPatience}
)

const lookPatience = 400 * time.Millisecond

// slowAnswers is by how many times the duration of an answer the patience for the next one grows.
const slowAnswers = 4

// runApart runs scripts, those for each server by themselves, in any order. A server that
// does not answer in time, though another does, holds up nothing: its calls alone fail. Nor does a
// call that its server refuses for longer.
func (s *Store) runApart(ctx context.Context, calls []call) []outcome {
	return s.runApartBy(ctx, apart{most: shardsPerExchange, patience: longestPatience}, calls)
}

// runApartBy is runApart in exchanges of another size, and with another patience.
func (s *Store) runApartBy(ctx context.Context, by apart, calls []call) []outcome {
	if len(calls) == 0 {
		return nil
	}
	if err := s.readyFor(ctx, calls); err != nil {
		return failed(len(calls), err)
	}
	if ctx.Err() != nil {
		return failed(len(calls), translate(ctx, ctx.Err()))
	}
	outcomes := failed(len(calls), errStraggler)
	var all []func(report func([]answer))
	for _, group := range s.byServer(ctx, calls) {
		all = append(all, func(report func([]answer)) { s.exchangeBy(ctx, by.most, group, report) })
	}
	err := together(ctx, s.workers, by.patience, all, func(answers []answer) (bool, error) {
		for _, a := range answers {
			outcomes[a.at] = a.outcome
		}
		return len(answers) > 0, nil
	})
	for i := range outcomes {
		if outcomes[i].err == errStraggler {
			outcomes[i].err = err
		}
	}
	return outcomes
}

// exchanging is calls that are sent together, for one server of a Cluster if it is known.
type exchanging struct {
	calls []call
	// at are the positions of the calls among those of their caller.
	at []int
	// servers are where the calls go; nil without a Cluster, and nil for one whose server is not known.
	servers []goredis.UniversalClient
}

// answer is the outcome of a call, and its position.
type answer struct {
	at int
	outcome
}

// byServer returns the calls that go to each server of a Cluster. Those whose server is not known
// are together.
func (s *Store) byServer(ctx context.Context, calls []call) []*exchanging {
	servers := s.serversOf(ctx, calls)
	if servers == nil {
		return []*exchanging{newExchanging(calls, nil)}
	}
	groups := make(map[goredis.UniversalClient]*exchanging)
	var all []*exchanging
	for i, server := range servers {
		x := groups[server]
		if x == nil {
			x = new(exchanging)
			groups[server], all = x, append(all, x)
		}
		x.calls, x.at, x.servers = append(x.calls, calls[i]), append(x.at, i), append(x.servers, server)
	}
	return all
}

// together runs functions at once, and gives take what they report, one report at a time. Once take has
// said that a report is an answer, none may be longer in coming than some patience: then together
// returns errStraggler. The patience grows by slowAnswers times what the answer took, since on a busy
// machine all servers are slow. together returns nil once all functions have ended, and the error of
// take or the context if that comes first. Functions that go on then report to nobody.
func together[T any](ctx context.Context, pool workerPool, longest time.Duration, all []func(report func(T)), take func(T) (answered bool, err error)) error {
	reports, ended, gone := make(chan T), make(chan struct{}, len(all)), make(chan struct{})
	defer close(gone)
	for _, run := range all {
		pool.do(func() {
			run(func(report T) {
				select {
				case reports <- report:
				case <-gone:
				}
			})
			ended <- struct{}{}
		})
	}
	late, began := time.NewTimer(time.Hour), time.Now()
	defer late.Stop()
	for open := len(all); open > 0; {
		select {
		case report := <-reports:
			answered, err := take(report)
			if err != nil {
				return err
			}
			if answered {
				late.Reset(patience(ctx, longest+slowAnswers*time.Since(began)))
			}
		case <-ended:
			open--
		case <-late.C:
			return errStraggler
		case <-ctx.Done():
			return translate(ctx, ctx.Err())
		}
	}
	return nil
}
