package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// errEncoding is the error of a server that refuses bytes: an error of unknown outcome.
var errEncoding = errors.New("invalid byte sequence")

func isText(text string) bool { return core.Text(text) == text }

func takesAnyName(s full) full {
	return replace(s, "Announce", func(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
		r.Node.Owner, r.Node.Name, r.Node.Host = core.Text(r.Node.Owner), core.Text(r.Node.Name), core.Text(r.Node.Host)
		return s.Announce(ctx, r)
	})
}

func failsForOddOwners(s full) full {
	return replaceErr(s, "Retire", func(ctx context.Context, owner string) error {
		if !isText(owner) {
			return errEncoding
		}
		return s.Retire(ctx, owner)
	})
}

func failsForOddReceipts(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		if slices.ContainsFunc(r.Settlements, func(x core.Settlement) bool { return !isText(x.ID) }) {
			return ports.TurnReply{}, errEncoding
		}
		return s.Turn(ctx, r)
	})
}

func failsForOddQueues(s full) full {
	return replace(s, "Renew", func(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
		if !isText(r.Lease.Shard.Queue) {
			return ports.RenewReply{}, ports.ErrInvalidRequest
		}
		return s.Renew(ctx, r)
	})
}

func failsForOddCursors(s full) full {
	return replace(s, "Jobs", func(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
		if !isText(r.After.ID) {
			return ports.JobsPage{}, errEncoding
		}
		return s.Jobs(ctx, r)
	})
}

func endsErrorsAtNUL(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			back := &r.Settlements[i].PutBack
			back.Error, _, _ = strings.Cut(back.Error, "\x00")
		}
		return s.Turn(ctx, r)
	})
}
