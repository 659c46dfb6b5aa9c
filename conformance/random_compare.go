package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ask makes a call on the store and on the model and compares the answers. It
// returns the model's. Of a call that was made several times before it answered,
// each but the last may have taken effect or not: the model does it once, twice …,
// and what answers like the store may be so.
func ask[Q, A any](d *duel, what string, request Q, call func(ports.ShardStore, context.Context, Q) (A, error)) (A, error) {
	d.t.Helper()
	d.t.Logf("%s %v", what, brief{request})
	store := d.handle()
	before := repeatsBy(store)
	got, err := call(store, d.ctx, request)
	repeated := repeatsBy(store) - before
	if repeated > 0 {
		d.t.Logf("it took %d calls to get an answer", 1+repeated)
	}
	var answer answered[A]
	var possible []*model
	var fault string
	try := func(world *model, request Q) {
		world.reach = orphansOf(got)
		want, wantErr := call(world, d.ctx, request)
		diff := disagree(what, want, got, wantErr, err)
		switch {
		case diff == "":
			if possible = append(possible, world); len(possible) == 1 {
				answer = answered[A]{want, wantErr}
			}
		case fault == "":
			fault = diff
		}
	}
	for _, world := range d.worlds {
		if repeated == 0 {
			try(world, request)
			continue
		}
		reached := world.clone()
		reached.reach = orphansOf(got)
		_, _ = call(reached, d.ctx, request) // the first call, if it took effect
		for _, world := range []*model{world, reached} {
			for range repeated {
				world = world.clone()
				try(world, resent(request))
			}
		}
	}
	if len(possible) == 0 {
		d.t.Fatal(fault)
	}
	d.worlds = distinct(possible)
	return answer.reply, answer.err
}

// resent is a request as a caller sends it again who has had no answer.
func resent[Q any](request Q) Q {
	if r, ok := any(&request).(*ports.TurnRequest); ok {
		r.Resent = true
	}
	return request
}

type answered[A any] struct {
	reply A
	err   error
}

// disagree says how a call's answer differs from the model's.
func disagree(what string, want, got any, wantErr, err error) string {
	if diff := differ(classOf(wantErr), classOf(err)); diff != "" {
		return fmt.Sprintf("%s failed otherwise than the model: %v, not %v (-want +got):\n%s", what, err, wantErr, diff)
	}
	if diff := differ(want, got); diff != "" && wantErr == nil {
		return fmt.Sprintf("%s answered otherwise than the model (-want +got):\n%s", what, diff)
	}
	return ""
}

// brief prints a request without what is long in it, and only if somebody reads
// it.
type brief struct{ request any }

// longData is a list of many bytes.
var longData = regexp.MustCompile(`\[((?:\d+ ){20})(?:\d+ )+\d+\]`)

// String implements fmt.Stringer.
func (b brief) String() string {
	return longData.ReplaceAllString(fmt.Sprintf("%+v", b.request), "[$1and more]")
}

// tell is ask for a call that answers nothing but an error.
func tell[Q any](d *duel, what string, request Q, call func(ports.ShardStore, context.Context, Q) error) error {
	d.t.Helper()
	_, err := ask(d, what, request, func(s ports.ShardStore, ctx context.Context, r Q) (struct{}, error) {
		return struct{}{}, call(s, ctx, r)
	})
	return err
}

// orphansOf makes the model hand over the orphans that the store did: it may be
// late with them, and gives them with any later turn. That they are orphans, and
// given once, the comparison shows.
func orphansOf(answer any) func(turn int64, id string) bool {
	var given []core.Claim
	switch a := answer.(type) {
	case ports.AcquireReply:
		given = a.Claims
	case ports.TurnReply:
		given = a.Orphans
	}
	return func(_ int64, id string) bool {
		return slices.ContainsFunc(given, func(c core.Claim) bool { return c.ID == id })
	}
}

// differ says how two answers differ to a caller: empty is nil, and a head that
// is none has no time.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return "" // nearly always, and much sooner than cmp knows
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b core.Head) bool { return plain(a) == plain(b) }))
}

// class is what a caller can learn from an error.
type class struct {
	Sentinels []string
	Held      ports.HeldError
	Entries   []int
	Unknown   bool
}

func classOf(err error) class {
	var c class
	for _, sentinel := range []error{
		ports.ErrUnknownQueue, ports.ErrShardCountMismatch, ports.ErrQueueMismatch,
		ports.ErrLeaseHeld, ports.ErrLeaseLost, ports.ErrStaleTurn, ports.ErrStaleAttempt,
		ports.ErrInvalidRequest, ports.ErrFull, ports.ErrNotEmpty, ports.ErrUnusable,
		core.ErrInvalidID, core.ErrInvalidPayload, core.ErrInvalidScore,
		core.ErrInvalidTime, core.ErrInvalidRule, core.ErrInvalidQueue,
	} {
		if errors.Is(err, sentinel) {
			c.Sentinels = append(c.Sentinels, sentinel.Error())
		}
	}
	c.Unknown = err != nil && len(c.Sentinels) == 0
	if held, ok := errors.AsType[*ports.HeldError](err); ok {
		c.Held = *held
	}
	if push, ok := errors.AsType[*ports.PushError](err); ok {
		c.Entries = push.Entries
	}
	return c
}
