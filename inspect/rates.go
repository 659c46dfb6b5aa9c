package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QueueRate is the rate at which batches of a queue start over all servers, and its limiters
// (docs/rules.md 12).
type QueueRate struct {
	Queue string `json:"queue" class:"queue" doc:"the queue"`
	// Rate is the rate in force: the one that running servers announce. If they announce several, it
	// is the fastest one.
	Rate string `json:"rate,omitempty" class:"public" doc:"the rate in force, as the running servers announce it, such as 10/1m0s+5; the fastest one if they differ; absent if there is none"`
	// Servers are the running servers of the queue, by the rate that they announce.
	Servers []ServersRate `json:"servers,omitempty" class:"public" wide:"true" doc:"the running servers of the queue, by the rate that they announce"`
	// Set is the rate that an operator has set, and SetBy who and SetAt when.
	Set   string    `json:"set,omitempty" class:"public" doc:"the rate that an operator has set; absent if the code of the servers applies"`
	SetBy string    `json:"set_by,omitempty" class:"public" doc:"who has set it; absent if it is unset or the name is unknown"`
	SetAt time.Time `json:"set_at,omitzero" class:"public" doc:"when it was set; absent if it is unset"`
	// Limiters are that of the whole queue and those that lie ahead, the one furthest ahead first.
	Limiters []LimiterState `json:"limiters" class:"public" doc:"the limiter of the whole queue, and those of its keys that lie ahead; the one furthest ahead first"`
	// Now is the store's clock.
	Now time.Time `json:"as_of" class:"public" doc:"the time of these values, by the store's clock"`
}

// ServersRate is a rate and the running servers that announce it.
type ServersRate struct {
	Rate    string   `json:"rate" class:"public" doc:"the rate, or none"`
	Servers []string `json:"servers" class:"public" doc:"the names of the servers with it"`
}

// LimiterState is a limiter of a queue.
type LimiterState struct {
	Queue string `json:"queue" class:"queue" wide:"true" doc:"the queue"`
	// Key is the limiter's key, empty for the whole queue.
	Key string `json:"key,omitempty" class:"id" doc:"its key, such as a tenant; absent for the whole queue"`
	// NextSlot is when the next start is allowed: Now, or later. It is zero for a limiter of a key,
	// whose rate servers don't announce.
	NextSlot time.Time `json:"next_slot,omitzero" class:"public" doc:"when the next start is allowed, which may be now; absent for a key, whose rate is unknown"`
	// Stopped is when a stop ends that lasts, and zero if none lasts.
	Stopped time.Time `json:"stopped_until,omitzero" class:"public" doc:"when a stop ends; absent if the limiter is not stopped"`
	// EvenPace is the time of the next slot at an even pace, and LastSlot that of the latest slot that
	// was granted, or of the latest use of one if that is later. Both are zero for a limiter that has
	// granted nothing, or nothing recently.
	EvenPace time.Time `json:"even_pace,omitzero" class:"public" wide:"true" doc:"the next slot at an even pace; a burst comes before it; absent if nothing was granted recently"`
	LastSlot time.Time `json:"last_slot,omitzero" class:"public" wide:"true" doc:"the latest slot that was granted, or the latest use of one if that is later; absent if nothing was granted recently"`
}

// MaxLimiters is the largest number of limiters that [Inspector.Rate] lists.
const MaxLimiters = ports.MaxPage

// Rate returns the rate of a queue, and at most limit of its limiters; a limit below 1 means
// [ports.DefaultPage]. It takes no slot.
func (i *Inspector) Rate(ctx context.Context, queue string, limit int) (QueueRate, error) {
	record, err := i.record(ctx, queue)
	if err != nil {
		return QueueRate{}, err
	}
	nodes, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(ctx) })
	if err != nil {
		return QueueRate{}, err
	}
	limits, err := ask(i, func(s Store) (ports.LimitsReply, error) {
		return s.Limits(ctx, ports.LimitsRequest{Queue: queue, Limit: limit})
	})
	if err != nil {
		return QueueRate{}, err
	}

	of := QueueRate{Queue: queue, Now: limits.Now.Time()}
	fastest := of.announced(&nodes)
	if set, ok := record.Settings.Find(core.SettingRate); ok {
		of.Set, of.SetBy, of.SetAt = set.Value, set.By, set.At.Time()
	}

	whole := false
	for at := range limits.Limits {
		l := &limits.Limits[at]
		whole = whole || l.Key == ""
		of.Limiters = append(of.Limiters, limiterState(queue, l, fastest, limits.Now))
	}
	if !whole {
		of.Limiters = append(of.Limiters, limiterState(queue, &ports.LimiterView{}, fastest, limits.Now))
	}
	return of, nil
}

// announced sets Rate and Servers by what the running servers of the queue announce, and returns the
// fastest rate.
func (q *QueueRate) announced(nodes *ports.NodesReply) (fastest core.Rate) {
	for at := range nodes.Nodes {
		n := &nodes.Nodes[at]
		if n.State(nodes.Now) == NodeGone || !slices.Contains(n.Queues, q.Queue) {
			continue
		}

		rate := core.Rate{}.String()
		for _, s := range n.Status.Queues {
			if s.Queue == q.Queue && s.Rate != "" {
				rate = s.Rate
			}
		}
		q.add(rate, n.Name)
		if r, err := core.ParseRate(rate); err == nil {
			fastest = faster(fastest, r)
		}
	}

	if fastest != (core.Rate{}) {
		q.Rate = fastest.String()
	}
	return fastest
}

// add adds a server with the rate that it announces.
func (q *QueueRate) add(rate, server string) {
	for at := range q.Servers {
		if q.Servers[at].Rate == rate {
			q.Servers[at].Servers = append(q.Servers[at].Servers, server)
			return
		}
	}
	q.Servers = append(q.Servers, ServersRate{rate, []string{server}})
}

// faster returns the faster of two rates. The zero rate counts as none.
func faster(a, b core.Rate) core.Rate {
	if a == (core.Rate{}) || b != (core.Rate{}) && b.Interval() < a.Interval() {
		return b
	}
	return a
}

// limiterState returns the state of a limiter. rate is that of the whole queue.
func limiterState(queue string, l *ports.LimiterView, rate core.Rate, now core.Instant) LimiterState {
	s := LimiterState{Queue: queue, Key: l.Key, Stopped: timeOrZero(l.StoppedAt(now))}
	s.EvenPace, s.LastSlot = timeOrZero(max(l.Next, l.Started)), timeOrZero(l.Last)
	if l.Key == "" {
		_, _, first := rate.Take(l.Limiter, now, 0, 0, 0)
		s.NextSlot = max(first, now).Time()
	}
	return s
}

// timeOrZero returns the time of an instant, or the zero time for 0.
func timeOrZero(at core.Instant) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return at.Time()
}

// RateWait is how long the rate of a queue allows no start.
type RateWait struct {
	// Rate is the fastest rate that running servers announce.
	Rate core.Rate
	// Wait is how long the rate allows no start: 0 if it allows one now.
	Wait time.Duration
	// Stopped is how long a stop of the rate lasts, and 0 if none does.
	Stopped time.Duration
}

// RateWaits returns the [RateWait] of each of these queues that running servers of the list serve with
// a rate, by the queue's name. Without names it returns those of all queues. It makes one call to the
// store for each queue with a rate, and returns [ErrUnknownQueue] for one that was forgotten
// meanwhile.
func (i *Inspector) RateWaits(ctx context.Context, nodes []Node, queues ...string) (map[string]RateWait, error) {
	rates := map[string]core.Rate{}
	for at := range nodes {
		n := &nodes[at]
		if n.State == NodeGone {
			continue
		}
		for _, q := range n.Status.Queues {
			if r, err := core.ParseRate(q.Rate); err == nil && (len(queues) == 0 || slices.Contains(queues, q.Queue)) {
				rates[q.Queue] = faster(rates[q.Queue], r)
			}
		}
	}

	waits := make(map[string]RateWait, len(rates))
	for queue, rate := range rates {
		limits, err := i.limits(ctx, queue)
		if err != nil {
			return nil, err
		}

		whole := wholeQueue(&limits)
		wait := RateWait{Rate: rate, Wait: limiterState(queue, &whole, rate, limits.Now).NextSlot.Sub(limits.Now.Time())}
		if stopped := whole.StoppedAt(limits.Now); stopped > 0 {
			wait.Stopped = stopped.Sub(limits.Now)
		}
		waits[queue] = wait
	}
	return waits, nil
}

// limits lists the limiters of a queue.
func (i *Inspector) limits(ctx context.Context, queue string) (ports.LimitsReply, error) {
	return ask(i, func(s Store) (ports.LimitsReply, error) {
		return s.Limits(ctx, ports.LimitsRequest{Queue: queue, Limit: MaxLimiters})
	})
}

// wholeQueue returns the limiter of the whole queue, which is zero if it does not lie ahead.
func wholeQueue(limits *ports.LimitsReply) ports.LimiterView {
	for at := range limits.Limits {
		if limits.Limits[at].Key == "" {
			return limits.Limits[at]
		}
	}
	return ports.LimiterView{}
}

// StopRate stops the limiter of a key of a queue for a while, or that of the whole queue for an empty
// key: no job starts before the end of the stop, on any server. A stop that lasts longer already
// stays. Running jobs continue. A server may still start what it was allowed to start before: one
// batch, within two poll intervals. A repeated call counts from its own time.
//
// The key of a job's rate is that which the code's RateBy returns, as lists show it. Jobs of the key
// whose starts servers hold already may start, for a poll interval.
//
// It returns [ErrInvalidOptions] for a time below 1 µs or above [core.MaxStop], and for a queue that
// servers run without a rate, on which a stop of the whole queue has no effect: use
// [Inspector.Pause] then.
func (i *Inspector) StopRate(ctx context.Context, queue, key string, d time.Duration) error {
	verb := fmt.Sprintf("stop rate for %v", d)
	if d < time.Microsecond || d > core.MaxStop {
		return fmt.Errorf("%w: a stop of %v; give 1µs to %v", ErrInvalidOptions, d, core.MaxStop)
	}
	if key == "" && i.hasNoRate(ctx, queue) {
		return fmt.Errorf("%w: servers run queue %q without a rate, so that a stop of it has no effect; "+
			"pause the queue instead, or set a rate first", ErrInvalidOptions, queue)
	}
	return i.stopRate(ctx, verb, ports.StopRequest{Queue: queue, Key: key, For: d})
}

// ResumeRate ends a stop of a limiter of a queue, whoever has stopped it. No burst follows. A repeated
// call changes nothing.
func (i *Inspector) ResumeRate(ctx context.Context, queue, key string) error {
	return i.stopRate(ctx, "resume rate", ports.StopRequest{Queue: queue, Key: key})
}

// hasNoRate reports whether servers run the queue and none of them has a rate. It is false if that is
// unknown.
func (i *Inspector) hasNoRate(ctx context.Context, queue string) bool {
	brief, cancel := context.WithTimeout(ctx, ServersPatience)
	defer cancel()
	nodes, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(brief) })
	if err != nil {
		return false
	}
	q := QueueRate{Queue: queue}
	return q.announced(&nodes) == core.Rate{} && len(q.Servers) > 0
}

func (i *Inspector) stopRate(ctx context.Context, verb string, r ports.StopRequest) error {
	var keys []string
	if r.Key != "" {
		keys = []string{r.Key}
	}

	d := i.begin(ctx, verb, r.Queue, keys).start(ctx)
	_, err := persist(ctx, i, func(s Store) (struct{}, error) { return struct{}{}, s.Stop(ctx, r) })
	d.end(ctx, 0, err)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}
