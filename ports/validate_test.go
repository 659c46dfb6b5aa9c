package ports_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// turnWithSlot is a turn that puts a job back with a slot.
func turnWithSlot(slot string) *ports.TurnRequest {
	s := core.Settlement{ID: "a", Rest: core.Requeue, PutBack: core.PutBack{Slot: slot}}
	return &ports.TurnRequest{Number: 1, TTL: time.Second, Settlements: []core.Settlement{s}}
}

func TestValidate(t *testing.T) {
	type request interface{ Validate() error }
	var (
		shard    = core.Shard{Queue: "orders", Index: 3}
		noShard  = core.Shard{Queue: "orders", Index: -1}
		tooMany  = make([]string, ports.MaxStep+1)
		entries  = []core.Entry{{ID: "a"}, {ID: "b"}}
		deadRefs = make([]ports.DeadLetterRef, ports.MaxStep+1)
		settle   = make([]core.Settlement, core.MaxTurnJobs+1)
	)
	schedule := core.Schedule{
		ScheduleKey: core.ScheduleKey{ID: "a", Name: "nightly"},
		Recurrence:  core.Recurrence{Spec: "every 1m0s 0"},
		Revision:    1,
	}
	change := ports.ScheduleChange{ScheduleKey: schedule.ScheduleKey, Schedule: &schedule, Entries: entries[:1]}
	nameless := ports.ScheduleChange{ScheduleKey: core.ScheduleKey{ID: "a"}, Revision: 1}
	busy := ports.ScheduleChange{ScheduleKey: schedule.ScheduleKey, Busy: &schedule}
	large := change
	large.Entries = []core.Entry{{ID: "a", Payload: core.Payload{Meta: make([]byte, core.MaxMetaBytes+1)}}}
	rate := core.Rate{Count: 1, Per: time.Second}
	tests := []struct {
		name string
		r    request
		want error
	}{
		{"declare", &ports.DeclareRequest{Queue: "orders", Shards: 5}, nil},
		{"declare without a name", &ports.DeclareRequest{Shards: 5}, core.ErrInvalidQueue},
		{"declare without shards", &ports.DeclareRequest{Queue: "orders"}, core.ErrInvalidQueue},

		{"take", &ports.TakeRequest{Queue: "orders", Takes: []ports.Take{{}, {Key: "a", Rate: rate, Want: 1}}}, nil},
		{"take nothing", &ports.TakeRequest{Queue: "orders"}, nil},
		{"take the most", &ports.TakeRequest{Takes: []ports.Take{{
			Key:   strings.Repeat("k", ports.MaxLimiterKey),
			Want:  ports.MaxWant,
			Ahead: core.MaxAhead,
		}}}, nil},
		{
			"take of too many",
			&ports.TakeRequest{Takes: make([]ports.Take, ports.MaxTakes+1)},
			ports.ErrInvalidRequest,
		},
		{"take twice", &ports.TakeRequest{Takes: []ports.Take{{Key: "a"}, {Key: "a"}}}, ports.ErrInvalidRequest},
		{
			"take of a long key",
			&ports.TakeRequest{Takes: []ports.Take{{Key: strings.Repeat("k", ports.MaxLimiterKey+1)}}},
			ports.ErrInvalidRequest,
		},
		{"take of no text", &ports.TakeRequest{Takes: []ports.Take{{Key: "\xff"}}}, ports.ErrInvalidRequest},
		{
			"take by an invalid rate",
			&ports.TakeRequest{Takes: []ports.Take{{Rate: core.Rate{Count: -1}}}},
			core.ErrInvalidOptions,
		},
		{"take less than none", &ports.TakeRequest{Takes: []ports.Take{{Want: -1}}}, ports.ErrInvalidRequest},
		{
			"take too many grants",
			&ports.TakeRequest{Takes: []ports.Take{{Want: ports.MaxWant + 1}}},
			ports.ErrInvalidRequest,
		},
		{"take of the past", &ports.TakeRequest{Takes: []ports.Take{{Ahead: -1}}}, ports.ErrInvalidRequest},
		{
			"take too far ahead",
			&ports.TakeRequest{Takes: []ports.Take{{Ahead: core.MaxAhead + 1}}},
			ports.ErrInvalidRequest,
		},
		{"stop", &ports.StopRequest{Queue: "orders", For: core.MaxStop}, nil},
		{"stop for no time", &ports.StopRequest{Queue: "orders", Key: "a"}, nil},
		{"stop for less than no time", &ports.StopRequest{For: -1}, ports.ErrInvalidRequest},
		{"stop for less than 1 µs", &ports.StopRequest{For: 1}, ports.ErrInvalidRequest},
		{"stop for too long", &ports.StopRequest{For: core.MaxStop + 1}, ports.ErrInvalidRequest},
		{"stop of no text", &ports.StopRequest{Key: "\xff"}, ports.ErrInvalidRequest},

		{"push", &ports.PushRequest{Queue: "orders", Shards: 5, Entries: entries}, nil},
		{"push nothing", &ports.PushRequest{Queue: "orders", Shards: 5}, nil},
		{"push to no queue", &ports.PushRequest{Shards: 5, Entries: entries}, core.ErrInvalidQueue},
		{
			"push by an unknown rule",
			&ports.PushRequest{Queue: "orders", Shards: 5, Rule: core.PushRule{Kind: 99}},
			core.ErrInvalidRule,
		},
		{
			"push by a negative limit",
			&ports.PushRequest{Queue: "orders", Shards: 5, Rule: core.PushRule{Limit: -1}},
			core.ErrInvalidRule,
		},
		{
			"push for no id",
			&ports.PushRequest{Queue: "orders", Shards: 5, Entries: []core.Entry{{}}},
			core.ErrInvalidID,
		},
		{"push no number", &ports.PushRequest{Queue: "orders", Shards: 5,
			Entries: []core.Entry{{ID: "a", Payload: core.Payload{Score: math.NaN()}}}}, core.ErrInvalidScore},

		{"acquire", &ports.AcquireRequest{Shard: shard, Owner: "me", Attempt: 1, TTL: time.Millisecond}, nil},
		{
			"acquire without an owner",
			&ports.AcquireRequest{Shard: shard, Attempt: 1, TTL: time.Second},
			ports.ErrInvalidRequest,
		},
		{
			"acquire before the first attempt",
			&ports.AcquireRequest{Shard: shard, Owner: "me", TTL: time.Second},
			ports.ErrInvalidRequest,
		},
		{"acquire for no time", &ports.AcquireRequest{Shard: shard, Owner: "me", Attempt: 1}, ports.ErrInvalidRequest},
		{
			"acquire for less than 1 ms",
			&ports.AcquireRequest{Shard: shard, Owner: "me", Attempt: 1, TTL: time.Millisecond - 1},
			ports.ErrInvalidRequest,
		},

		{"turn", &ports.TurnRequest{Number: 1, TTL: time.Second, Settlements: settle[:core.MaxTurnJobs]}, nil},
		{"turn with a slot", turnWithSlot(strings.Repeat("s", ports.MaxLimiterKey)), nil},
		{"turn with a long slot", turnWithSlot(strings.Repeat("s", ports.MaxLimiterKey+1)), ports.ErrInvalidRequest},
		{"turn with a slot that is no text", turnWithSlot("a\x00"), ports.ErrInvalidRequest},
		{"turn 0", &ports.TurnRequest{TTL: time.Second}, ports.ErrInvalidRequest},
		{"turn for a negative time", &ports.TurnRequest{Number: 1, TTL: -time.Second}, ports.ErrInvalidRequest},
		{
			"turn with too many settlements",
			&ports.TurnRequest{Number: 1, TTL: time.Second, Settlements: settle},
			ports.ErrInvalidRequest,
		},

		{"renew", &ports.RenewRequest{TTL: time.Second}, nil},
		{"renew for no time", &ports.RenewRequest{}, ports.ErrInvalidRequest},

		{"announce", &ports.AnnounceRequest{Node: ports.Node{Owner: "me"}, TTL: time.Second}, nil},
		{"announce nobody", &ports.AnnounceRequest{TTL: time.Second}, ports.ErrInvalidRequest},
		{"announce for no time", &ports.AnnounceRequest{Node: ports.Node{Owner: "me"}}, ports.ErrInvalidRequest},

		{
			"permit",
			&ports.PermitRequest{Owner: "me", Attempt: 1, Limit: 5, Hold: 9, Want: 9, TTL: time.Millisecond},
			nil,
		},
		{"permit nobody", &ports.PermitRequest{Attempt: 1, Limit: 5, TTL: time.Second}, ports.ErrInvalidRequest},
		{
			"permit before the first attempt",
			&ports.PermitRequest{Owner: "me", Limit: 5, TTL: time.Second},
			ports.ErrInvalidRequest,
		},
		{"permit none", &ports.PermitRequest{Owner: "me", Attempt: 1, TTL: time.Second}, ports.ErrInvalidRequest},
		{
			"permit more than there can be",
			&ports.PermitRequest{Owner: "me", Attempt: 1, Limit: ports.MaxPermits + 1, TTL: time.Second},
			ports.ErrInvalidRequest,
		},
		{
			"permit fewer than none",
			&ports.PermitRequest{Owner: "me", Attempt: 1, Limit: 5, Hold: -1, TTL: time.Second},
			ports.ErrInvalidRequest,
		},
		{
			"permit more than are wanted",
			&ports.PermitRequest{Owner: "me", Attempt: 1, Limit: 5, Hold: 2, Want: 1, TTL: time.Second},
			ports.ErrInvalidRequest,
		},
		{"permit for no time", &ports.PermitRequest{Owner: "me", Attempt: 1, Limit: 5}, ports.ErrInvalidRequest},

		{"step over jobs", &ports.JobStep{Shard: shard}, nil},
		{"step over as many jobs as can be", &ports.JobStep{Shard: shard, IDs: tooMany[:ports.MaxStep]}, nil},
		{"step over too many jobs", &ports.JobStep{Shard: shard, IDs: tooMany}, ports.ErrInvalidRequest},
		{"step over the jobs of no shard", &ports.JobStep{Shard: noShard}, ports.ErrInvalidRequest},
		{"step over the dead", &ports.DeadLetterStep{Shard: shard, DeadLetters: deadRefs[:ports.MaxStep]}, nil},
		{
			"step over too many dead",
			&ports.DeadLetterStep{Shard: shard, DeadLetters: deadRefs},
			ports.ErrInvalidRequest,
		},
		{"step over the dead but some", &ports.DeadLetterStep{Shard: shard, Keep: 1}, nil},
		{"step over the dead but fewer than none", &ports.DeadLetterStep{Shard: shard, Keep: -1}, ports.ErrInvalidRequest},
		{
			"step over a group but some",
			&ports.DeadLetterStep{Shard: shard, Group: "timeout", Keep: 1},
			ports.ErrInvalidRequest,
		},
		{
			"step over named dead but some",
			&ports.DeadLetterStep{Shard: shard, DeadLetters: deadRefs[:1], Keep: 1},
			ports.ErrInvalidRequest,
		},
		{"step over the dead of no shard", &ports.DeadLetterStep{Shard: noShard}, ports.ErrInvalidRequest},
		{"cancel", &ports.CancelRequest{Shard: shard, IDs: tooMany[:ports.MaxStep]}, nil},
		{"cancel too many", &ports.CancelRequest{Shard: shard, IDs: tooMany}, ports.ErrInvalidRequest},
		{"cancel in no shard", &ports.CancelRequest{Shard: noShard}, ports.ErrInvalidRequest},
		{"edit", &ports.EditRequest{Shard: shard, ID: "a"}, nil},
		{"edit in no shard", &ports.EditRequest{Shard: noShard, ID: "a"}, ports.ErrInvalidRequest},

		{"change a schedule", &ports.ChangeSchedulesRequest{Shards: 1, Changes: []ports.ScheduleChange{change}}, nil},
		{"remove a schedule of no name", &ports.ChangeSchedulesRequest{
			Shards:  1,
			Changes: []ports.ScheduleChange{nameless},
		}, core.ErrInvalidSchedule},
		{"remove a busy schedule", &ports.ChangeSchedulesRequest{Shards: 1, Changes: []ports.ScheduleChange{busy}},
			ports.ErrInvalidRequest},
		{"fire a large meta", &ports.ChangeSchedulesRequest{Shards: 1, Changes: []ports.ScheduleChange{large}},
			core.ErrInvalidPayload},
		{"list names of schedules", &ports.ScheduleNamesRequest{Shards: []int{0}}, nil},
		{"list names of schedules of no shard", &ports.ScheduleNamesRequest{Shards: []int{-1}},
			ports.ErrInvalidRequest},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.r.Validate(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestPushNamesTheEntryThatIsRefused(t *testing.T) {
	r := ports.PushRequest{Queue: "orders", Shards: 5, Entries: []core.Entry{{ID: "a"}, {ID: "b\n"}, {ID: ""}}}
	err := r.Validate()
	if want := `entry 1: invalid id: "b\n" has a control character; encode it`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSizesHaveDefaultsAndBounds(t *testing.T) {
	tests := []struct {
		limit, page, step int
	}{
		{math.MinInt, ports.DefaultPage, ports.MaxStep},
		{0, ports.DefaultPage, ports.MaxStep},
		{1, 1, 1},
		{ports.MaxStep, ports.MaxStep, ports.MaxStep},
		{ports.MaxPage, ports.MaxPage, ports.MaxStep},
		{math.MaxInt, ports.MaxPage, ports.MaxStep},
	}

	for _, tt := range tests {
		page := ports.PageRequest{Limit: tt.limit}
		dead := ports.DeadLetterStep{Limit: tt.limit}
		if page.Size() != tt.page || dead.Size() != tt.step {
			t.Errorf("a limit of %d: page %d, want %d; step %d, want %d",
				tt.limit, page.Size(), tt.page, dead.Size(), tt.step)
		}
	}
}

func TestATurnsBudgetHasItsDefaultsAndBounds(t *testing.T) {
	tests := []struct {
		name string
		r    ports.TurnRequest
		want core.Budget
	}{
		{
			"nothing asked",
			ports.TurnRequest{},
			core.Budget{Jobs: 0, PerJob: core.MaxTurnPayloads, Bytes: core.DefaultTurnBytes},
		},
		{"within bounds", ports.TurnRequest{Want: 2, PerJob: 3, Bytes: 4}, core.Budget{Jobs: 2, PerJob: 3, Bytes: 4}},
		{
			"negative",
			ports.TurnRequest{Want: -1, PerJob: -1, Bytes: -1},
			core.Budget{Jobs: 0, PerJob: core.MaxTurnPayloads, Bytes: core.DefaultTurnBytes},
		},
		{
			"too much",
			ports.TurnRequest{Want: 1e6, PerJob: 1e6, Bytes: 1e9},
			core.Budget{Jobs: core.MaxTurnJobs, PerJob: core.MaxTurnPayloads, Bytes: core.MaxStepBytes},
		},
	}

	for _, tt := range tests {
		if got := tt.r.Budget(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestLimitsOfTicks(t *testing.T) {
	for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, math.MaxInt: ports.MaxSchedulesPage} {
		if got := (&ports.TicksRequest{Limit: limit}).Size(); got != want {
			t.Errorf("limit %d: %d, want %d", limit, got, want)
		}
	}
}

func TestSchedulesMatchByIDAndName(t *testing.T) {
	key := core.ScheduleKey{ID: "a", Name: "nightly"}
	for r, want := range map[core.ScheduleKey]bool{
		{}:                        true,
		{ID: "a"}:                 true,
		{Name: "nightly"}:         true,
		key:                       true,
		{ID: "b"}:                 false,
		{ID: "a", Name: "weekly"}: false,
	} {
		if got := (&ports.SchedulesRequest{ID: r.ID, Name: r.Name}).Matches(key); got != want {
			t.Errorf("%+v matches: %v", r, got)
		}
	}
}
