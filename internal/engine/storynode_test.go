package engine_test

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
)

// storyNode is a node of a story, with the process that it runs in.
type storyNode struct {
	*node
	number  int
	process *process
}

// startOne starts a node with options that nobody has chosen.
func (s *story) startOne(number int) {
	n := &storyNode{number: number, process: &process{}}
	schedulers := []core.SchedulerFunc{core.Lag, core.Seq, core.StrictBy(queueName), core.WeightedBy(nil)}
	run := s.eachJob(n.process)
	if s.n(3) == 0 {
		run = s.wholeBatch(n.process)
	}
	n.node = s.start(run, shards(storyShards), lanes(s.lanes(s)), batches(1+s.n(3)*s.n(3)), func(o *setup) {
		o.queue.Policy = s.ledger.policy
		o.queue.Outcome = storyOutcome
		o.queue.PerJob = []int{1, 3, core.MaxTurnPayloads}[s.n(3)]
		o.queue.Parallel = []int{0, 0, 1, 1 + s.n(100)}[s.n(4)]
		o.queue.MaxLanes = []int{0, 0, 0, 1 + s.n(200)}[s.n(4)]
		o.queue.MaxRunning = []int{0, 0, 0, 1 + s.n(20)}[s.n(4)]
		o.Prefetch = []int{0, 1 + s.n(20), core.MaxTurnJobs, core.MaxTurnJobs}[s.n(4)]
		o.Splitter = s.splitter(s, number)
		o.Scheduler = schedulers[s.n(len(schedulers))]
		o.LeaseTTL = 10 * time.Second
		o.ShutdownTimeout = 20 * time.Second
		o.noWakeups = s.n(4) == 0
		o.link.delay = time.Duration(s.n(3)) * time.Millisecond
		o.link.swap(s.ledger.open())
		if os.Getenv("SKEIN_STORY") == "" {
			o.Logger = slog.New(notOfJobs{o.Logger.Handler()})
		}
	})
	s.nodes = append(s.nodes, n)
}

// notOfJobs leaves out log lines about jobs, which are most of the log.
type notOfJobs struct{ slog.Handler }

func (h notOfJobs) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "job ") || strings.HasPrefix(r.Message, "more jobs ") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// Errors of a story's handlers.
var (
	errStory  = errors.New("a failure of the story")
	errBury   = errors.New("buried by the story")
	errSnooze = errors.New("snoozed by the story")
)

// storyOutcome is the meaning of a handler's error for its job.
func storyOutcome(err error) core.Outcome {
	switch {
	case err == nil:
		return core.Outcome{Kind: core.Done}
	case errors.Is(err, errBury):
		return core.Outcome{Kind: core.Buried, Error: err.Error()}
	case errors.Is(err, errSnooze):
		return core.Outcome{Kind: core.Snoozed, Delay: time.Second}
	}
	return core.Outcome{Kind: core.Failed, Error: core.ErrorText(err.Error())}
}

// eachJob is a handler that runs the jobs of a batch one after another.
func (s *story) eachJob(p *process) handler {
	return each(func(ctx context.Context, c *core.Claim) (err error) {
		if !s.ledger.begin(ctx, p, c) {
			return errStory
		}
		err = errStory // unless the handler returns
		defer func() { s.ledger.end(c, storyOutcome(err)) }()
		err = s.handle(ctx, c)
		return err
	})
}

// wholeBatch is a handler that runs the jobs of a batch at once, as long as the first one takes,
// and lets them end each in its own way or all in one.
func (s *story) wholeBatch(p *process) handler {
	return func(ctx context.Context, b *execution.Batch) (err error) {
		var begun []int
		for i := range b.Claims {
			if s.ledger.begin(ctx, p, &b.Claims[i]) {
				begun = append(begun, i)
			}
		}
		own := make([]error, len(b.Claims))
		err = errStory
		defer func() {
			for _, i := range begun {
				own := own[i]
				if own == nil {
					own = err
				}
				s.ledger.end(&b.Claims[i], storyOutcome(own))
			}
		}()
		err = s.handle(ctx, &b.Claims[0])
		if len(b.Claims) > 1 && ctx.Err() == nil {
			own[1] = errBury
			b.SetOutcome(1, errBury)
		}
		return err
	}
}

// handle is one execution, whose length and end follow from the seed, the id and how often it was
// executed before.
func (s *story) handle(ctx context.Context, c *core.Claim) error {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, c.ID)
	s.mu.Lock()
	s.runs[c.ID]++
	r := rand.New(rand.NewPCG(s.seed, hash.Sum64()+s.runs[c.ID]))
	s.mu.Unlock()

	length, end := r.IntN(20), r.IntN(40)
	switch {
	case length < 10:
		time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
	case length < 17:
		time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
	case length < 19:
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(1 + r.Int64N(int64(s.long)))): // never 0: see randomHistory
		}
	default: // its context is nothing to it
		time.Sleep(time.Duration(r.Int64N(int64(s.long) / 3)))
	}

	if ctx.Err() != nil && end < 35 {
		return context.Cause(ctx)
	}
	switch end {
	case 0, 1, 2, 3:
		return errStory
	case 4:
		panic("of the story")
	case 5:
		runtime.Goexit()
	case 6:
		return errBury
	case 7:
		return errSnooze
	}
	return nil
}
