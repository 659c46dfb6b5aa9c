package redis

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Turn implements [ports.Consumer]. The client does not repeat it after an error of unknown
// outcome, because the caller could not notice that it got the reply to a repeat, which reports no
// skipped settlements.
func (s *Store) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TurnReply{}, err
	}
	args, err := turnArgs(&r, s.now())
	if err != nil {
		return ports.TurnReply{}, err
	}

	value, err := s.run(ctx, exchange.Call{
		Script:  turnScript,
		Keys:    s.someKeys(r.Lease.Shard, keyMeta, keyJobs, keyReady, keyClaims, keyLease),
		Args:    args,
		NoRetry: true,
	})
	if err != nil {
		return ports.TurnReply{}, err
	}

	reply := record.ReplyOf(value)
	switch status := reply.Text(); status {
	case "ok", "again":
		return turned(&reply, status == "again")
	case "unknown":
		return ports.TurnReply{}, s.absent(ctx, r.Lease.Shard)
	case "lost":
		return ports.TurnReply{}, storekit.LeaseLost(r.Lease)
	case "stale":
		return ports.TurnReply{}, storekit.StaleTurn(&r, reply.Int())
	case "ahead":
		return ports.TurnReply{}, storekit.TurnsLost(&r, reply.Int())
	}
	return ports.TurnReply{}, record.ErrReply
}

// turnArgs returns the script's ARGV; see lua/turn/turn.lua.
func turnArgs(r *ports.TurnRequest, now any) ([]any, error) {
	by, err := record.Claimer(r)
	if err != nil {
		return nil, err
	}

	b := r.Budget()
	args := make([]any, 0, 14+len(r.Settlements))
	args = append(args, now, r.Lease.Owner, r.Lease.Token, r.Number, r.TTL.Microseconds(),
		b.Jobs, b.PerJob, b.Bytes,
		record.ReceiptText(core.Receipt{Token: r.Lease.Token, Number: r.Number}), by, record.KeepText(r.Keep, r.Marks))
	settlements, parts := r.Recorded()
	args = record.AppendSettlements(args, settlements)

	if r.Resent || len(r.Parts)+len(r.Begin) > 0 {
		args = append(args, boolArg(r.Resent), len(r.Parts))
	}
	for i := range parts {
		p := &parts[i]
		args = append(args, p.ID, record.ReceiptText(p.Receipt), record.ReceiptText(p.Receipt.NextPart()),
			p.Position, p.RetryCount, p.Recoveries, record.MarkText(p.Mark))
	}
	for _, ref := range r.Begin {
		args = append(args, ref.ID, record.ReceiptText(ref.Receipt))
	}
	return args, nil
}

// turned reads the reply of a turn that was carried out, or of its repeat.
func turned(r *record.Reply, again bool) (ports.TurnReply, error) {
	t := ports.TurnReply{
		Repeat:    again,
		Last:      r.Int(),
		Now:       core.Instant(r.Int()),
		Remaining: micros(r.Int()),
		Paused:    r.Int() == 1,
		Head:      r.Head(),
	}

	skipped, claims, cancels, notBegun := r.List(), r.List(), r.List(), r.List()
	for skipped.More() {
		t.Skipped = append(t.Skipped, int(skipped.Int()))
	}
	for notBegun.More() {
		t.NotBegun = append(t.NotBegun, int(notBegun.Int()))
	}

	var err error
	if t.Claims, err = record.ParseClaims(&claims); err != nil {
		return ports.TurnReply{}, err
	}
	if t.Cancellations, err = record.ParseCancels(&cancels); err != nil {
		return ports.TurnReply{}, err
	}

	r.Join(&skipped, &claims, &notBegun)
	if !r.More() {
		return t, r.Err() // the usual turn has no others
	}

	deferred, orphans := r.List(), r.List()
	for deferred.More() {
		t.Deferred = append(t.Deferred, int(deferred.Int()))
	}
	if t.Orphans, err = record.ParseClaims(&orphans); err != nil {
		return ports.TurnReply{}, err
	}

	skippedParts := r.List()
	for skippedParts.More() {
		t.SkippedParts = append(t.SkippedParts, int(skippedParts.Int()))
	}
	r.Join(&deferred, &skippedParts)

	if r.More() {
		marks := r.List()
		record.AddMarks(t.Claims, &marks)
		r.Join(&marks)
	}
	if again { // the order of its claims is undefined
		slices.SortFunc(t.Claims, func(a, b core.Claim) int {
			return cmp.Or(cmp.Compare(a.PerformAt, b.PerformAt), strings.Compare(a.ID, b.ID))
		})
	}
	return t, r.Err()
}
