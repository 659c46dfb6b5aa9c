package exchange

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// ErrStraggler is the error of a call whose server did not answer long after another had.
var ErrStraggler = errors.New(
	"redis: one server has not answered, long after another call was answered; check that server")

// Apart is how calls that go to each server separately are sent, and how long they wait.
type Apart struct {
	// Most is the largest number of calls in one exchange.
	Most int
	// Patience is how long a server may take once another has answered. It is also how long refused
	// calls are repeated, as for a slot that moves, once the server has answered the others.
	Patience time.Duration
}

// slowAnswers is the factor by which the duration of an answer lengthens the patience for the next
// one.
const slowAnswers = 4

// RunApart runs calls in any order, separately for each server. If a server does not answer in time
// although another does, only its own calls fail, and no other call waits for it. The same holds
// for a call that its server keeps refusing.
func (s *Link) RunApart(ctx context.Context, by Apart, calls []Call) []Outcome {
	if ctx.Err() != nil {
		return Failed(len(calls), Translate(ctx, ctx.Err()))
	}

	outcomes := Failed(len(calls), ErrStraggler)
	var all []func(report func([]answer))
	for _, group := range s.byServer(ctx, calls) {
		all = append(all, func(report func([]answer)) { s.exchangeBy(ctx, by.Most, group, report) })
	}

	began := time.Now()
	err := Together(ctx, s.Workers, by.Patience, all, func(answers []answer) (bool, error) {
		for _, a := range answers {
			outcomes[a.at] = a.Outcome
		}
		return len(answers) > 0, nil
	})

	if err == ErrStraggler {
		s.connections.unanswered(began)
	} else if err != nil {
		s.connections.gaveUp(ctx, began)
	}

	for i := range outcomes {
		if outcomes[i].Err == ErrStraggler {
			outcomes[i].Err = err
		}
	}
	return outcomes
}

// exchanging is calls that are sent together, to one server of a Cluster if that server is known.
type exchanging struct {
	calls []Call
	// at are the positions of the calls among those of their caller.
	at []int
	// servers are the calls' destinations: nil without a Cluster, and nil for a call whose server is
	// not known.
	servers []goredis.UniversalClient
}

// answer is the outcome of a call, and its position.
type answer struct {
	at int
	Outcome
}

// byServer returns the calls that go to each server of a Cluster. Calls whose server is not known
// are kept together.
func (s *Link) byServer(ctx context.Context, calls []Call) []*exchanging {
	servers := s.serversFor(ctx, calls)
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

// Together runs functions at once and passes their reports to take, one at a time. Once take has
// returned true for a report, the next answer must come within a patience; otherwise Together
// returns ErrStraggler. The patience grows by slowAnswers times the duration of the answer, since
// on a busy machine all servers are slow. Together returns nil once all functions have ended, or
// the error of take or of the context if that comes first. The reports of functions that still run
// then are dropped.
func Together[T any](
	ctx context.Context,
	pool workerPool,
	longest time.Duration,
	all []func(report func(T)),
	take func(T) (answered bool, err error),
) error {
	reports, ended, gone := make(chan T), make(chan struct{}, len(all)), make(chan struct{})
	defer close(gone)

	for _, run := range all {
		pool.Do(func() {
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
				late.Reset(Patience(ctx, longest+slowAnswers*time.Since(began)))
			}
		case <-ended:
			open--
		case <-late.C:
			return ErrStraggler
		case <-ctx.Done():
			return Translate(ctx, ctx.Err())
		}
	}
	return nil
}
