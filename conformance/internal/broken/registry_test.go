package broken

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// showsNodes changes the list of nodes before it is returned.
func showsNodes(s full, change func(*ports.NodesReply)) full {
	return intercept(s, "Nodes", func(ctx context.Context, call storekit.Call) error {
		reply, err := s.Nodes(ctx)
		change(&reply)
		*call.Reply.(*ports.NodesReply) = reply
		return err
	})
}

// beforeAnnounce calls do before each Announce.
func beforeAnnounce(s full, do func(ctx context.Context, owner string) error) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		if err := do(ctx, r.Node.Owner); err != nil {
			return ports.AnnounceReply{}, err
		}
		return s.Announce(ctx, r)
	})
}

func hidesGoneNodes(s full) full {
	return showsNodes(s, func(r *ports.NodesReply) {
		r.Nodes = slices.DeleteFunc(r.Nodes, func(n ports.Node) bool { return n.State(r.Now) == ports.NodeGone })
	})
}

// remembersNodes keeps listing nodes that it has once listed.
func remembersNodes(s full) full {
	var seen []ports.Node
	return showsNodes(s, func(r *ports.NodesReply) {
		for _, n := range seen {
			if !slices.ContainsFunc(r.Nodes, func(o ports.Node) bool { return o.Owner == n.Owner }) {
				r.Nodes = slices.Insert(r.Nodes, 0, n)
			}
		}
		seen = slices.Clone(r.Nodes)
	})
}

// stretchesNodes reports the end of an announcement as it was at first, even if the clock stepped
// back.
func stretchesNodes(s full) full {
	ends := make(map[string]core.Instant)
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		reply, err := s.Announce(ctx, r)
		for i, n := range reply.Nodes {
			if n.Owner == r.Node.Owner {
				ends[n.Owner] = n.ExpiresAt
			}
			reply.Nodes[i].ExpiresAt = ends[n.Owner]
		}
		return reply, err
	})
}

func tellsNodesTheStatus(s full) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		reply, err := s.Announce(ctx, r)
		if err == nil {
			reply.Nodes[0].Status = r.Node.Status
		}
		return reply, err
	})
}

func forgetsBoundsOfNodes(s full) full {
	return showsNodes(s, func(r *ports.NodesReply) {
		for _, n := range r.Nodes {
			for i := range n.Status.Queues {
				n.Status.Queues[i].MaxLanes, n.Status.Queues[i].Parallel = 0, 0
				n.Status.Queues[i].Merge = core.MergeRule{}
			}
		}
	})
}

func forgetsLastChances(s full) full {
	return showsNodes(s, func(r *ports.NodesReply) {
		for i := range r.Nodes {
			r.Nodes[i].Status.LastChance = ports.LastChance{}
		}
	})
}

func forgetsClocks(s full) full {
	return showsNodes(s, func(r *ports.NodesReply) {
		for i := range r.Nodes {
			r.Nodes[i].Status.ClockAhead = 0
		}
	})
}

func endsDrainsByRenewal(s full) full {
	return beforeAnnounce(s, func(ctx context.Context, owner string) error {
		if err := s.DrainNode(ctx, owner, false); !errors.Is(err, ports.ErrUnknownNode) {
			return err
		}
		return nil
	})
}

// remembersDrains keeps a drain for a server that was gone and announces itself again.
func remembersDrains(s full) full {
	asked := map[string]bool{}
	drains := replaceErr(s, "DrainNode", func(ctx context.Context, r storekit.DrainNodeRequest) error {
		asked[r.Owner] = r.Drain
		return s.DrainNode(ctx, r.Owner, r.Drain)
	})
	return replace(drains, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		r.Node.Draining = r.Node.Draining || asked[r.Node.Owner]
		return s.Announce(ctx, r)
	})
}

// overrulesNodes lists a server that stops as alive, if an operator has ended its drain.
func overrulesNodes(s full) full {
	asked := map[string]bool{}
	drains := replaceErr(s, "DrainNode", func(ctx context.Context, r storekit.DrainNodeRequest) error {
		asked[r.Owner] = r.Drain
		return s.DrainNode(ctx, r.Owner, r.Drain)
	})
	return showsNodes(drains, func(r *ports.NodesReply) {
		for i := range r.Nodes {
			if drain, known := asked[r.Nodes[i].Owner]; known {
				r.Nodes[i].Draining = drain
			}
		}
	})
}

func drainsAnybody(s full) full {
	return replaceErr(s, "DrainNode", func(ctx context.Context, r storekit.DrainNodeRequest) error {
		if err := s.DrainNode(ctx, r.Owner, r.Drain); !errors.Is(err, ports.ErrUnknownNode) {
			return err
		}
		return nil
	})
}

// wakesAtRenewals treats each announcement as that of a new server.
func wakesAtRenewals(s full) full { return beforeAnnounce(s, s.Retire) }

func changesNodesSilently(s full) full {
	return withoutWakeups(s, func(_ context.Context, shard core.Shard) bool { return shard == core.Shard{} })
}

// wakesEverybodyForNodes subscribes every reader to the list of nodes.
func wakesEverybodyForNodes(s full) full {
	return replace(s, "Wakeups", func(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
		return s.Wakeups(ctx, append(slices.Clone(shards), core.Shard{}))
	})
}

// changesPermits returns a function that changes the requests of Permit of a store.
func changesPermits(change func(r *ports.PermitRequest)) func(full) full {
	return func(s full) full {
		return replace(s, "Permit", func(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
			change(&r)
			return s.Permit(ctx, r)
		})
	}
}

var (
	// exceedsPermits gives one permit more than the limit allows.
	exceedsPermits = changesPermits(func(r *ports.PermitRequest) { r.Limit++ })
	// keepsPermits keeps permits for twice the TTL.
	keepsPermits = changesPermits(func(r *ports.PermitRequest) { r.TTL *= 2 })
	// mixesPermits counts all queues as one.
	mixesPermits = changesPermits(func(r *ports.PermitRequest) { r.Queue = env.Orders })
)

// takesLatePermits treats each call as a new attempt.
func takesLatePermits(s full) full {
	var attempts int64
	return changesPermits(func(r *ports.PermitRequest) { attempts++; r.Attempt = attempts })(s)
}

// stripsPermits takes permits away from an owner that asks with a smaller limit.
func stripsPermits(s full) full {
	return changesPermits(func(r *ports.PermitRequest) {
		r.Hold = min(r.Hold, r.Limit)
		r.Want = max(r.Hold, r.Want)
	})(s)
}

// freesPermitsSilently sends no wake-up, because the store learns of no owner that wants more
// permits than it holds.
var freesPermitsSilently = changesPermits(func(r *ports.PermitRequest) { r.Want = r.Hold })

// forgetsWanting lists only owners that hold permits.
func forgetsWanting(s full) full {
	return replace(s, "Permit", func(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
		reply, err := s.Permit(ctx, r)
		var holding []core.PermitHolder
		for _, h := range reply.Holders {
			if h.Held > 0 {
				holding = append(holding, h)
			}
		}
		reply.Holders = holding
		return reply, err
	})
}

// audits changes each action before it is stored.
func audits(s full, change func(*ports.Action)) full {
	return replaceErr(s, "Audit", func(ctx context.Context, a ports.Action) error {
		change(&a)
		return s.Audit(ctx, a)
	})
}

// showsActions changes a page before it is returned.
func showsActions(s full, change func(ports.ActionsRequest, []ports.Action) []ports.Action) full {
	return replace(s, "Actions", func(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
		page, err := s.Actions(ctx, r)
		return change(r, page), err
	})
}

func forgetsReasons(s full) full { return audits(s, func(a *ports.Action) { a.Reason = "" }) }

// auditsEndsAnew stores the end of an action beside its beginning.
func auditsEndsAnew(s full) full {
	return audits(s, func(a *ports.Action) {
		if a.Ended {
			a.ID += " ended"
		}
	})
}

// datesActionsByTheirEnd shows the time when an action ended as the time when it began.
func datesActionsByTheirEnd(s full) full {
	return showsActions(s, func(_ ports.ActionsRequest, page []ports.Action) []ports.Action {
		for i := range page {
			if page[i].Ended {
				page[i].At = page[i].At.Add(page[i].Took)
			}
		}
		return page
	})
}

// auditsOnlyTheFirst ignores later records of an action.
func auditsOnlyTheFirst(s full) full {
	seen := map[string]bool{}
	return replaceErr(s, "Audit", func(ctx context.Context, a ports.Action) error {
		if seen[a.ID] {
			return nil
		}
		seen[a.ID] = true
		return s.Audit(ctx, a)
	})
}

// keepsActionsForEver lists an action again that the store has removed.
func keepsActionsForEver(s full) full {
	var all []ports.Action

	kept := replaceErr(s, "Audit", func(ctx context.Context, a ports.Action) error {
		err := s.Audit(ctx, a)
		if page, listed := s.Actions(ctx, ports.ActionsRequest{Limit: 1}); err == nil && listed == nil &&
			len(page) == 1 && page[0].ID == a.ID {
			all = append(all, page[0])
		}
		return err
	})

	return showsActions(kept, func(r ports.ActionsRequest, page []ports.Action) []ports.Action {
		if len(page) == 0 && len(all) > 0 && all[0].At < r.Before {
			return all[:1]
		}
		return page
	})
}

func listsOldActionsFirst(s full) full {
	return showsActions(s, func(_ ports.ActionsRequest, page []ports.Action) []ports.Action {
		for i, j := 0, len(page)-1; i < j; i, j = i+1, j-1 {
			page[i], page[j] = page[j], page[i]
		}
		return page
	})
}

// listsTheLastActionTwice begins a page with the last action of the page before.
func listsTheLastActionTwice(s full) full {
	return replace(s, "Actions", func(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
		if r.Before > 1 {
			r.Before++
		}
		return s.Actions(ctx, r)
	})
}

func takesActionsWithoutAVerb(s full) full {
	return audits(s, func(a *ports.Action) {
		if a.Verb == "" {
			a.Verb = "something"
		}
	})
}

// historyOf is a store with another history. keep returns the record that stays when next arrives
// for the owner, queue and minute of known.
func historyOf(s full, keep func(known, next core.Stats) core.Stats) full {
	type key struct {
		owner, queue string
		minute       core.Instant
	}

	records := map[key]core.Stats{}

	h := replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		for _, one := range r.Records {
			k := key{r.Owner, one.Queue, one.Minute}
			records[k] = keep(records[k], one.Stats)
		}
		return s.Record(ctx, r)
	})

	return replace(h, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		if _, err := s.History(ctx, r); err != nil {
			return ports.HistoryReply{}, err
		}

		sums := storekit.NewHistory(r, 0)
		for k, stats := range records {
			if k.queue == r.Queue {
				sums.Add(k.minute, &stats)
			}
		}
		return ports.HistoryReply{Minutes: sums.List()}, nil
	})
}

func newer(known, next core.Stats) core.Stats {
	if next.Counted() > known.Counted() {
		return next
	}
	return known
}

// addsRecords adds up records that should replace one another.
func addsRecords(s full) full {
	return historyOf(s, func(known, next core.Stats) core.Stats { known.Add(&next); return known })
}

func takesLateRecords(s full) full {
	return historyOf(s, func(_, next core.Stats) core.Stats { return next })
}

// keepsHistory lists whatever was ever recorded.
func keepsHistory(s full) full { return historyOf(s, newer) }

// removesHistoryAtOnce never lists a minute again that was once too old.
func removesHistoryAtOnce(s full) full {
	latest := map[string]core.Instant{}
	h := replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		for _, one := range r.Records {
			latest[one.Queue] = max(latest[one.Queue], one.Minute)
		}
		return s.Record(ctx, r)
	})
	return replace(h, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		r.From = max(r.From, latest[r.Queue].Add(-ports.HistoryKept))
		return s.History(ctx, r)
	})
}

// mixesOwners keeps one record of each minute for all owners.
func mixesOwners(s full) full {
	return replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		if r.Owner != "" {
			r.Owner = "all"
		}
		return s.Record(ctx, r)
	})
}

// startsStepsAtFrom begins steps where the list begins.
func startsStepsAtFrom(s full) full {
	return replace(s, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		reply, err := s.History(ctx, r)
		if list := reply.Minutes; r.Step > 0 && len(list) > 0 {
			list[0].At = max(list[0].At, r.From.Minute())
		}
		return reply, err
	})
}

// refusesUndeclared fails for a record of a queue that was not declared.
func refusesUndeclared(s full) full {
	return replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
		for _, one := range r.Records {
			if _, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{one.Queue}}); err != nil {
				return err
			}
		}
		return s.Record(ctx, r)
	})
}

func brokenTracked() []brokenStore {
	return []brokenStore{
		{
			"lists tracked ids backwards",
			"tracked/lists ids in order, with the time when each was added",
			wrapped(changesTracked(slices.Reverse[[]ports.TrackedID])),
		},
		{"forgets since when an id is tracked", "tracked/a repeated call changes nothing", wrapped(tracksAnew)},
		{"untracks no id", "tracked/untracks an id", wrapped(untracksNone)},
		{
			"untracks an id whose job has ended",
			"tracked/tracks ids without a job, and after their jobs have ended",
			wrapped(tracksJobs),
		},
		{
			"keeps the tracked ids of a forgotten queue",
			"tracked/belongs to its queue and ends with it",
			wrapped(tracksForever),
		},
		{"makes room for a tracked id", "tracked/refuses more ids than MaxTracked", wrapped(makesRoom)},
	}
}

func brokenIdentity() []brokenStore {
	return []brokenStore{
		{"draws another id for each handle", "identity/has an id that stays", drawsForEachHandle},
		{"draws another id at each declaration", "identity/has an id that stays", wrapped(drawsAtDeclare)},
		{"has one id for all stores", "identity/is another one for each store", wrapped(hasOneID)},
		{
			"lets the last of many creators replace the id",
			"identity/is one for callers that create the store at once",
			wrapped(drawsForEachCreator),
		},
		{"keeps its id whatever an operator does", "identity/is replaced by an operator", wrapped(keepsID)},
		{"accepts any id", "identity/refuses a bad id", wrapped(takesAnyID)},
	}
}

// drawsForEachHandle is a backend whose handles have an id each.
func drawsForEachHandle(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	store := withTransactions(clock)
	handles := 0
	return func() ports.ShardStore {
		handles++
		return returnsID(store, fmt.Sprint("handle-", handles))
	}
}

// returnsID is a store that has the given id.
func returnsID(s full, id string) full {
	return intercept(s, "StoreID", func(_ context.Context, call storekit.Call) error {
		*call.Reply.(*string) = id
		return nil
	})
}

func hasOneID(s full) full { return returnsID(s, "store") }

func drawsAtDeclare(s full) full {
	return replace(s, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		reply, err := s.Declare(ctx, r)
		return reply, errors.Join(err, s.SetStoreID(ctx, rand.Text()))
	})
}

// drawsForEachCreator draws an id at each declaration, and returns each of them once before it
// stays with the last.
func drawsForEachCreator(s full) full {
	var mu sync.Mutex
	var ids []string

	h := replace(s, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		mu.Lock()
		ids = append(ids, rand.Text())
		mu.Unlock()
		return s.Declare(ctx, r)
	})

	return intercept(h, "StoreID", func(_ context.Context, call storekit.Call) error {
		mu.Lock()
		defer mu.Unlock()
		*call.Reply.(*string) = ids[0]
		if len(ids) > 1 {
			ids = ids[1:]
		}
		return nil
	})
}

func keepsID(s full) full {
	return replaceErr(s, "SetStoreID", func(_ context.Context, id string) error { return ports.ValidateStoreID(id) })
}

func takesAnyID(s full) full {
	return replaceErr(s, "SetStoreID", func(ctx context.Context, id string) error {
		if ports.ValidateStoreID(id) != nil {
			return nil
		}
		return s.SetStoreID(ctx, id)
	})
}

func changesTracked(change func([]ports.TrackedID)) func(s full) full {
	return func(s full) full {
		return replace(s, "Tracked", func(ctx context.Context, queue string) ([]ports.TrackedID, error) {
			all, err := s.Tracked(ctx, queue)
			change(all)
			return all, err
		})
	}
}

func tracksAnew(s full) full {
	return replace(s, "Track", func(ctx context.Context, r ports.TrackRequest) (bool, error) {
		if !r.Untrack {
			_, _ = s.Track(ctx, ports.TrackRequest{Queue: r.Queue, ID: r.ID, Untrack: true})
		}
		return s.Track(ctx, r)
	})
}

func untracksNone(s full) full {
	return replace(s, "Track", func(ctx context.Context, r ports.TrackRequest) (bool, error) {
		if r.Untrack {
			return true, nil
		}
		return s.Track(ctx, r)
	})
}

func tracksJobs(s full) full {
	return replace(s, "Tracked", func(ctx context.Context, queue string) ([]ports.TrackedID, error) {
		all, err := s.Tracked(ctx, queue)
		return slices.DeleteFunc(all, func(t ports.TrackedID) bool {
			found, err := s.Find(ctx, ports.FindRequest{Queue: queue, ID: t.ID})
			return err == nil && found.Queued == nil
		}), err
	})
}

// tracksForever tracks the ids of a forgotten queue again when the queue is declared.
func tracksForever(s full) full {
	kept := map[string][]ports.TrackedID{}
	h := replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		kept[queue], _ = s.Tracked(ctx, queue)
		return s.Forget(ctx, queue)
	})
	return replace(h, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		reply, err := s.Declare(ctx, r)
		for _, t := range kept[r.Queue] {
			_, _ = s.Track(ctx, ports.TrackRequest{Queue: r.Queue, ID: t.ID})
		}
		return reply, err
	})
}

func makesRoom(s full) full {
	return replace(s, "Track", func(ctx context.Context, r ports.TrackRequest) (bool, error) {
		changed, err := s.Track(ctx, r)
		if !errors.Is(err, ports.ErrTooManyTracked) {
			return changed, err
		}
		all, _ := s.Tracked(ctx, r.Queue)
		_, _ = s.Track(ctx, ports.TrackRequest{Queue: r.Queue, ID: all[0].ID, Untrack: true})
		return s.Track(ctx, r)
	})
}

func wakesNobody(s full) full {
	return replace(s, "Wakeups", func(context.Context, []core.Shard) (<-chan core.Shard, error) {
		return make(chan core.Shard), nil
	})
}

// releasesSilently drops the wake-ups of shards that have no queued job.
func releasesSilently(s full) full {
	return withoutWakeups(s, func(ctx context.Context, shard core.Shard) bool {
		heads, err := s.Heads(ctx, []core.Shard{shard})
		return err != nil || !slices.ContainsFunc(heads.Heads, func(h core.Head) bool { return h.OK })
	})
}

// withoutWakeups drops some of the wake-ups.
func withoutWakeups(s full, drops func(context.Context, core.Shard) bool) full {
	return replace(s, "Wakeups", func(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
		in, err := s.Wakeups(ctx, shards)
		if err != nil {
			return nil, err
		}

		out := make(chan core.Shard)
		go func() {
			defer close(out)
			for shard := range in {
				if drops(ctx, shard) {
					continue
				}

				select {
				case out <- shard:
				case <-ctx.Done():
				}
			}
		}()

		return out, nil
	})
}

// namesFewJobs keeps only the first ten of the running jobs in a server's status.
func namesFewJobs(s full) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		if jobs := r.Node.Status.Longest; len(jobs) <= ports.MaxLongest {
			r.Node.Status.Longest = jobs[:min(len(jobs), 10)]
		}
		return s.Announce(ctx, r)
	})
}
