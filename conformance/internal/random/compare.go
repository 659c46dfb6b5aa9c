package random

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/conformance/internal/model"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// compare makes a call on the store and on the model, compares the replies and returns the model's.
// If the call was repeated until its outcome was known, each call except the last may have taken
// effect or not. So each candidate makes the call once, twice and so on, and the candidates that
// reply like the store remain.
func compare[Q, A any](
	d *driver,
	what string,
	request Q,
	call func(ports.ShardStore, context.Context, Q) (A, error),
) (A, error) {
	d.t.Helper()
	d.t.Logf("%s %v", what, brief{request})

	ctx, repeats := harness.CountRepeats(d.ctx)
	got, err := call(d.handle(), ctx, request)
	repeated := repeats.All.Load()
	if repeated > 0 {
		d.t.Logf("it took %d calls to get a reply", 1+repeated)
	}

	var first result[A]
	var possible []*model.Store
	var fault string

	try := func(candidate *model.Store, request Q) {
		candidate.Reach = orphansOf(got)
		want, wantErr := call(candidate, d.ctx, request)
		diff := disagree(what, withoutCounts(want, got, repeated > 0),
			withoutCounts(got, got, repeated > 0), wantErr, err)

		switch {
		case diff == "":
			if possible = append(possible, candidate); len(possible) == 1 {
				first = result[A]{want, wantErr}
			}
		case fault == "":
			fault = diff
		}
	}

	for _, candidate := range d.candidates {
		if repeated == 0 {
			try(candidate, request)
			continue
		}

		reached := candidate.Clone()
		reached.Reach = orphansOf(got)
		_, _ = call(reached, d.ctx, request) // the first call, if it took effect
		for _, candidate := range []*model.Store{candidate, reached} {
			for range repeated {
				candidate = candidate.Clone()
				try(candidate, resent(request))
			}
		}
	}

	if len(possible) == 0 {
		d.t.Fatal(fault)
	}
	d.candidates = model.Distinct(possible)
	return first.reply, first.err
}

// resent returns a request as a caller sends it again that got no reply.
func resent[Q any](request Q) Q {
	if r, ok := any(&request).(*ports.TurnRequest); ok {
		r.Resent = true
	}
	return request
}

type result[A any] struct {
	reply A
	err   error
}

// disagree returns the difference of a call's result from the model's, or "" if they are equal.
func disagree(what string, want, got any, wantErr, err error) string {
	if diff := harness.Diff(harness.ClassOf(wantErr), harness.ClassOf(err)); diff != "" {
		return fmt.Sprintf("%s returned the error %v, and the model %v (-want +got):\n%s", what, err, wantErr, diff)
	}
	if diff := harness.Diff(want, got); diff != "" && wantErr == nil {
		return fmt.Sprintf("%s returned another reply than the model (-want +got):\n%s", what, diff)
	}
	return ""
}

// withoutCounts returns a reply to a push without the numbers of new, merged, duplicate and
// superseded entries, if they can't be compared: the store does not report them, or the push was
// repeated and met its own entries. It returns any other reply unchanged.
func withoutCounts(reply, got any, repeated bool) any {
	pushed, ok := got.(ports.PushReply)
	if !ok || !repeated && pushed != (ports.PushReply{Now: pushed.Now}) {
		return reply
	}
	return ports.PushReply{Now: reply.(ports.PushReply).Now}
}

// brief formats a request without long data, and only when the log is shown.
type brief struct{ request any }

// longData matches the digits of many bytes.
var longData = regexp.MustCompile(`\[((?:\d+ ){20})(?:\d+ )+\d+\]`)

// String implements fmt.Stringer.
func (b brief) String() string {
	return longData.ReplaceAllString(fmt.Sprintf("%+v", b.request), "[$1and more]")
}

// compareErr is compare for a call that returns nothing but an error.
func compareErr[Q any](d *driver, what string, request Q, call func(ports.ShardStore, context.Context, Q) error) error {
	d.t.Helper()
	_, err := compare(d, what, request, func(s ports.ShardStore, ctx context.Context, r Q) (struct{}, error) {
		return struct{}{}, call(s, ctx, r)
	})
	return err
}

// orphansOf returns a Reach with which the model hands over the same orphans as the store did in a
// reply, since a store may hand them over with any turn. The comparison of the replies then shows
// whether they are orphans, and are handed over only once.
func orphansOf(reply any) func(turn int64, id string) bool {
	var orphans []core.Claim
	switch r := reply.(type) {
	case ports.AcquireReply:
		orphans = r.Claims
	case ports.TurnReply:
		orphans = r.Orphans
	}
	return func(_ int64, id string) bool {
		return slices.ContainsFunc(orphans, func(c core.Claim) bool { return c.ID == id })
	}
}
