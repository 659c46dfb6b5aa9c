package engine_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

var discard = slog.New(slog.DiscardHandler)

// unusable is a store that no waiting cures.
type unusable struct{ *memory.Store }

var errPassword = fmt.Errorf("%w: wrong password; set the right one", ports.ErrUnusable)

func (unusable) Declare(context.Context, ports.DeclareRequest) (ports.DeclareReply, error) {
	return ports.DeclareReply{}, errPassword
}

func (unusable) Acquire(context.Context, ports.AcquireRequest) (ports.AcquireReply, error) {
	return ports.AcquireReply{}, errPassword
}

func (unusable) Turn(context.Context, ports.TurnRequest) (ports.TurnReply, error) {
	return ports.TurnReply{}, errPassword
}

func (unusable) Renew(context.Context, ports.RenewRequest) (ports.RenewReply, error) {
	return ports.RenewReply{}, errPassword
}

func (unusable) Heads(context.Context, []core.Shard) (ports.HeadsReply, error) {
	return ports.HeadsReply{}, errPassword
}

func (unusable) Announce(context.Context, ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return ports.AnnounceReply{}, errPassword
}
