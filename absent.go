package skein

import (
	"context"
	"fmt"
	"reflect"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// absent reports whether a store, or what else is given as an interface, is nil or a
// nil pointer.
func absent(v any) bool {
	if v == nil {
		return true
	}
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}

// noStore is the store of an inspector that was given none: everything is refused.
type noStore struct{ InspectorStore }

var errNoStore = fmt.Errorf("%w: the inspector has no store; give NewInspector one", ErrInvalidOptions)

func (noStore) Announce(context.Context, ports.AnnounceRequest) (r ports.AnnounceReply, err error) {
	return r, errNoStore
}

func (noStore) Ping(context.Context) error { return errNoStore }

func (noStore) Forget(context.Context, string) error { return errNoStore }

func (noStore) Recount(context.Context, core.Shard) (r ports.RecountReply, err error) {
	return r, errNoStore
}

func (noStore) Retire(context.Context, string) error { return errNoStore }

func (noStore) Nodes(context.Context) (r []ports.Node, err error) {
	return r, errNoStore
}

func (noStore) Queues(context.Context) (r []ports.Queue, err error) {
	return r, errNoStore
}

func (noStore) Stats(context.Context, []string) (r []ports.QueueStats, err error) {
	return r, errNoStore
}

func (noStore) History(context.Context, ports.HistoryRequest) (r []ports.MinuteStats, err error) {
	return r, errNoStore
}

func (noStore) Jobs(context.Context, ports.JobsRequest) (r ports.JobsPage, err error) {
	return r, errNoStore
}

func (noStore) Claimed(context.Context, ports.PageRequest) (r ports.ClaimedPage, err error) {
	return r, errNoStore
}

func (noStore) Morgue(context.Context, ports.MorgueRequest) (r ports.MorguePage, err error) {
	return r, errNoStore
}

func (noStore) Find(context.Context, string, string) (r ports.Found, err error) {
	return r, errNoStore
}

func (noStore) Pause(context.Context, string) error { return errNoStore }

func (noStore) Resume(context.Context, string) error { return errNoStore }

func (noStore) Expedite(context.Context, ports.JobStep) (r ports.StepReply, err error) {
	return r, errNoStore
}

func (noStore) Bury(context.Context, ports.JobStep) (r ports.StepReply, err error) {
	return r, errNoStore
}

func (noStore) Delete(context.Context, ports.JobStep) (r ports.StepReply, err error) {
	return r, errNoStore
}

func (noStore) Cancel(context.Context, ports.CancelRequest) (r ports.StepReply, err error) {
	return r, errNoStore
}

func (noStore) Revive(context.Context, ports.DeadLetterStep) (r ports.StepReply, err error) {
	return r, errNoStore
}

func (noStore) Purge(context.Context, ports.DeadLetterStep) (r ports.StepReply, err error) {
	return r, errNoStore
}

func (noStore) Edit(context.Context, ports.EditRequest) (r ports.StepReply, err error) {
	return r, errNoStore
}
