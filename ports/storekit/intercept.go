package storekit

import (
	"context"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Interceptor is called in place of each call of a store, and decides whether the call is made.
// next makes the call, with the request that call.Request points to at that time. It stores the
// reply where call.Reply points, and returns the error of the call.
//
// To refuse a call, return an error without calling next. To lose a reply, call next and return an
// error. To repeat a call, call next again after it has returned. To change a call, change the
// value that call.Request or call.Reply points to. If the Interceptor returns an error, the caller
// gets that error and a zero reply. If the Interceptor returns nil, the caller gets the value that
// call.Reply points to.
//
// next may also be called after the Interceptor has returned, like a packet that arrives late. The
// reply of such a call is ignored. Clone the slices of the request before the Interceptor returns,
// since the caller may change them after it has its reply.
//
// An Interceptor is called from all goroutines that call the store, so it must be safe for
// concurrent use.
type Interceptor func(ctx context.Context, call Call, next func(ctx context.Context) error) error

// Call is one call of a method of [ports.ShardStore], [ports.Notifier] or
// [ports.Settler].
type Call struct {
	// Method is the name of the method, such as "Push".
	Method string
	// Request is a pointer to the method's parameter after the context, such as *ports.PushRequest,
	// *[]core.Shard or *string. It is a *[DrainNodeRequest], a *[SettleRequest] or a
	// *[SettlePayloadRequest] for the methods with two such parameters, and nil for methods without
	// one.
	Request any
	// Reply is a pointer to the method's result before the error, such as
	// *ports.PushReply or *[]ports.Queue. It is nil for methods that only return an
	// error.
	Reply any

	do func(ctx context.Context, store ports.ShardStore) error
}

// On makes the call on the given store instead of the intercepted one, for example on a mirror or a
// replacement. Otherwise it is like next of an [Interceptor]. It returns [ports.ErrInvalidRequest]
// for Wakeups, Settle and SettlePayload if store does not implement them.
func (c Call) On(ctx context.Context, store ports.ShardStore) error {
	return c.do(ctx, store)
}

// DrainNodeRequest has the parameters of DrainNode.
type DrainNodeRequest struct {
	Owner string
	Drain bool
}

// SettleRequest has the parameters of Settle of a [ports.Settler].
type SettleRequest struct {
	Shard       core.Shard
	Settlements []core.Settlement
}

// SettlePayloadRequest has the parameters of SettlePayload of a [ports.Settler].
type SettlePayloadRequest struct {
	Shard      core.Shard
	Settlement core.PayloadSettlement
}

// Intercept returns a store that calls around in place of every call of store's methods. It is a
// [ports.Notifier] or a [ports.Settler] if, and only if, store is one; to hide that, pass a struct
// that embeds only a [ports.ShardStore]. It is always a [ports.TurnLimiter]. Its MaxTurns returns
// that of store, or 0 if store is no TurnLimiter; around is not called for MaxTurns. All other
// methods of store, such as Check, are hidden. If around is nil, Intercept returns store.
func Intercept(store ports.ShardStore, around Interceptor) ports.ShardStore {
	if around == nil {
		return store
	}

	s := &intercepted{store, around}
	_, notifies := store.(ports.Notifier)
	_, settles := store.(ports.Settler)

	// Callers find optional abilities by assertion, so the result has exactly those of the store.
	switch {
	case notifies && settles:
		return struct {
			*intercepted
			notifier
			settler
		}{s, notifier{s}, settler{s}}
	case notifies:
		return struct {
			*intercepted
			notifier
		}{s, notifier{s}}
	case settles:
		return struct {
			*intercepted
			settler
		}{s, settler{s}}
	}
	return s
}

// intercepted implements every method by itself and embeds no store, so that it does not compile
// if the port has a new method.
type intercepted struct {
	store  ports.ShardStore
	around Interceptor
}

var (
	_ ports.ShardStore  = (*intercepted)(nil)
	_ ports.TurnLimiter = (*intercepted)(nil)
	_ ports.Notifier    = notifier{}
	_ ports.Settler     = settler{}
)

// none is the request or the reply of a method that lacks one.
type none struct{}

// pass makes a call through the interceptor.
func pass[Q, A any](
	ctx context.Context,
	s *intercepted,
	method string,
	request Q,
	do func(ports.ShardStore, context.Context, Q) (A, error),
) (A, error) {
	var reply A
	var mu sync.Mutex // a late next may write reply while it is returned

	call := Call{Method: method, do: func(ctx context.Context, store ports.ShardStore) error {
		got, err := do(store, ctx, request)
		mu.Lock()
		defer mu.Unlock()
		reply = got
		return err
	}}

	if _, ok := any(request).(none); !ok {
		call.Request = &request
	}
	if _, ok := any(reply).(none); !ok {
		call.Reply = &reply
	}

	if err := s.around(ctx, call, func(ctx context.Context) error { return call.do(ctx, s.store) }); err != nil {
		var zero A
		return zero, err
	}

	mu.Lock()
	defer mu.Unlock()
	return reply, nil
}

// passOnly is pass for a method that only returns an error.
func passOnly[Q any](
	ctx context.Context,
	s *intercepted,
	method string,
	request Q,
	do func(ports.ShardStore, context.Context, Q) error,
) error {
	_, err := pass(ctx, s, method, request, func(store ports.ShardStore, ctx context.Context, request Q) (none, error) {
		return none{}, do(store, ctx, request)
	})
	return err
}

// passBare is pass for a method without a request.
func passBare[A any](
	ctx context.Context,
	s *intercepted,
	method string,
	do func(ports.ShardStore, context.Context) (A, error),
) (A, error) {
	return pass(ctx, s, method, none{}, func(store ports.ShardStore, ctx context.Context, _ none) (A, error) {
		return do(store, ctx)
	})
}

func (s *intercepted) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	return pass(ctx, s, "Declare", r, ports.ShardStore.Declare)
}

func (s *intercepted) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	return pass(ctx, s, "Push", r, ports.ShardStore.Push)
}

func (s *intercepted) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return pass(ctx, s, "Acquire", r, ports.ShardStore.Acquire)
}

func (s *intercepted) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	return pass(ctx, s, "Turn", r, ports.ShardStore.Turn)
}

func (s *intercepted) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return pass(ctx, s, "Renew", r, ports.ShardStore.Renew)
}

func (s *intercepted) Release(ctx context.Context, l ports.Lease) error {
	return passOnly(ctx, s, "Release", l, ports.ShardStore.Release)
}

func (s *intercepted) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	return pass(ctx, s, "Heads", shards, ports.ShardStore.Heads)
}

func (s *intercepted) Permit(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
	return pass(ctx, s, "Permit", r, ports.ShardStore.Permit)
}

func (s *intercepted) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	return pass(ctx, s, "Take", r, ports.ShardStore.Take)
}

func (s *intercepted) Stop(ctx context.Context, r ports.StopRequest) error {
	return passOnly(ctx, s, "Stop", r, ports.ShardStore.Stop)
}

func (s *intercepted) Limits(ctx context.Context, r ports.LimitsRequest) (ports.LimitsReply, error) {
	return pass(ctx, s, "Limits", r, ports.ShardStore.Limits)
}

func (s *intercepted) Ping(ctx context.Context) error {
	return passOnly(ctx, s, "Ping", none{}, func(store ports.ShardStore, ctx context.Context, _ none) error {
		return store.Ping(ctx)
	})
}

func (s *intercepted) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return pass(ctx, s, "Announce", r, ports.ShardStore.Announce)
}

func (s *intercepted) Retire(ctx context.Context, owner string) error {
	return passOnly(ctx, s, "Retire", owner, ports.ShardStore.Retire)
}

func (s *intercepted) Nodes(ctx context.Context) (ports.NodesReply, error) {
	return passBare(ctx, s, "Nodes", ports.ShardStore.Nodes)
}

func (s *intercepted) Audit(ctx context.Context, a ports.Action) error {
	return passOnly(ctx, s, "Audit", a, ports.ShardStore.Audit)
}

func (s *intercepted) Actions(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
	return pass(ctx, s, "Actions", r, ports.ShardStore.Actions)
}

func (s *intercepted) Track(ctx context.Context, r ports.TrackRequest) (bool, error) {
	return pass(ctx, s, "Track", r, ports.ShardStore.Track)
}

func (s *intercepted) Tracked(ctx context.Context, queue string) ([]ports.TrackedID, error) {
	return pass(ctx, s, "Tracked", queue, ports.ShardStore.Tracked)
}

func (s *intercepted) StoreID(ctx context.Context) (string, error) {
	return passBare(ctx, s, "StoreID", ports.ShardStore.StoreID)
}

func (s *intercepted) SetStoreID(ctx context.Context, id string) error {
	return passOnly(ctx, s, "SetStoreID", id, ports.ShardStore.SetStoreID)
}

func (s *intercepted) DrainNode(ctx context.Context, owner string, drain bool) error {
	return passOnly(ctx, s, "DrainNode", DrainNodeRequest{owner, drain},
		func(store ports.ShardStore, ctx context.Context, r DrainNodeRequest) error {
			return store.DrainNode(ctx, r.Owner, r.Drain)
		})
}

func (s *intercepted) Record(ctx context.Context, r ports.RecordRequest) error {
	return passOnly(ctx, s, "Record", r, ports.ShardStore.Record)
}

func (s *intercepted) Queues(ctx context.Context) ([]ports.Queue, error) {
	return passBare(ctx, s, "Queues", ports.ShardStore.Queues)
}

func (s *intercepted) Pause(ctx context.Context, queue string) error {
	return passOnly(ctx, s, "Pause", queue, ports.ShardStore.Pause)
}

func (s *intercepted) Resume(ctx context.Context, queue string) error {
	return passOnly(ctx, s, "Resume", queue, ports.ShardStore.Resume)
}

func (s *intercepted) SetMerge(ctx context.Context, r ports.SetMergeRequest) error {
	return passOnly(ctx, s, "SetMerge", r, ports.ShardStore.SetMerge)
}

func (s *intercepted) Configure(ctx context.Context, r ports.ConfigureRequest) error {
	return passOnly(ctx, s, "Configure", r, ports.ShardStore.Configure)
}

func (s *intercepted) Forget(ctx context.Context, queue string) error {
	return passOnly(ctx, s, "Forget", queue, ports.ShardStore.Forget)
}

func (s *intercepted) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	return pass(ctx, s, "Recount", r, ports.ShardStore.Recount)
}

func (s *intercepted) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	return pass(ctx, s, "QuarantinedShards", r, ports.ShardStore.QuarantinedShards)
}

func (s *intercepted) Quarantined(ctx context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	return pass(ctx, s, "Quarantined", r, ports.ShardStore.Quarantined)
}

func (s *intercepted) Discard(ctx context.Context, r ports.DiscardRequest) (int, error) {
	return pass(ctx, s, "Discard", r, ports.ShardStore.Discard)
}

func (s *intercepted) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Expedite", r, ports.ShardStore.Expedite)
}

func (s *intercepted) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Bury", r, ports.ShardStore.Bury)
}

func (s *intercepted) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Delete", r, ports.ShardStore.Delete)
}

func (s *intercepted) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Cancel", r, ports.ShardStore.Cancel)
}

func (s *intercepted) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return pass(ctx, s, "Revive", r, ports.ShardStore.Revive)
}

func (s *intercepted) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Import", r, ports.ShardStore.Import)
}

func (s *intercepted) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return pass(ctx, s, "Purge", r, ports.ShardStore.Purge)
}

func (s *intercepted) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Edit", r, ports.ShardStore.Edit)
}
