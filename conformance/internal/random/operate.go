package random

import (
	"context"
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// operate makes one random call of an operator.
func (d *driver) operate() {
	switch pick(
		d, "operator", "pause", "resume", "resume", "merge rule", "merge rule", "configure", "configure",
		"expedite", "expedite", "bury", "delete", "cancel", "cancel", "revive", "revive", "purge", "edit",
		"import", "import", "recount", "forget",
	) {
	case "pause":
		compareErr(d, "Pause", d.queue().Name, ports.ShardStore.Pause)
	case "resume":
		compareErr(d, "Resume", d.queue().Name, ports.ShardStore.Resume)
	case "merge rule":
		d.setMerge()
	case "configure":
		d.configure()
	case "expedite":
		compare(d, "Expedite", d.jobStep(), ports.ShardStore.Expedite)
	case "bury":
		compare(d, "Bury", d.firstStep(), ports.ShardStore.Bury)
	case "delete":
		compare(d, "Delete", pick(d, "delete", d.deleteStep, d.firstStep)(), ports.ShardStore.Delete)
	case "cancel":
		d.cancel()
	case "revive":
		s := d.deadLetterStep()
		if s.DeadLetters != nil {
			how := pick(d, "stale", "", "", "fresh", "unmark")
			s.Fresh, s.Unmark = how == "fresh", how == "unmark"
		}
		compare(d, "Revive", s, ports.ShardStore.Revive)
	case "purge":
		compare(d, "Purge", d.deadLetterStep(), ports.ShardStore.Purge)
	case "edit":
		d.edit()
	case "import":
		compare(d, "Import", d.imported(), ports.ShardStore.Import)
	case "recount":
		r := ports.RecountRequest{Shard: d.shard(), Limit: pick(d, "limit", 0, 1, 3)}
		compare(d, "Recount", r, harness.Recount)
	case "forget":
		d.forget()
	}
}

// forget tries to remove a queue, and declares it again, because the other calls need it. The
// queue's leases are then over. A repeated call returns ErrUnknownQueue if its first call has
// removed the queue.
func (d *driver) forget() {
	q := d.queue()
	err := compareErr(d, "Forget", q.Name, ports.ShardStore.Forget)
	if err != nil && !errors.Is(err, ports.ErrUnknownQueue) {
		return
	}

	compare(d, "Declare", declaration(q), ports.ShardStore.Declare)
	for at, h := range d.current {
		if at.Queue == q.Name {
			d.former = append(d.former, h)
			delete(d.current, at)
		}
	}
}

// setMerge changes the merge rule of a queue.
func (d *driver) setMerge() {
	at := rapid.IntRange(0, len(d.queues)-1).Draw(d.t, "queue")
	r := ports.SetMergeRequest{Queue: d.queues[at].Name, Merge: d.mergeRule()}
	if compareErr(d, "SetMerge", r, ports.ShardStore.SetMerge) == nil {
		d.queues[at].Merge = r.Merge
	}
}

// configure changes the settings of a queue, mostly to the version that follows.
func (d *driver) configure() {
	queue := d.queue().Name
	present := d.model().SettingsOf(queue)
	by := pick(d, "by", "ann", "bob")

	s := present
	for _, name := range []string{core.SettingMaxLanes, core.SettingMorgueCount} {
		c := core.SettingChange{Name: name, Unset: rapid.Bool().Draw(d.t, "unset"), Value: pick(d, "value", "0", "1", "7")}
		changed, err := s.Change([]core.SettingChange{c}, by, d.model().Now())
		if err != nil {
			d.t.Fatal(err)
		}
		s = changed
	}
	s.Version = present.Version + pick[int64](d, "version", 1, 1, 1, 1, 0, 2)
	compareErr(d, "Configure", ports.ConfigureRequest{Queue: queue, Settings: s}, ports.ShardStore.Configure)
}

// cancel cancels jobs, mostly claimed ones.
func (d *driver) cancel() {
	r := ports.CancelRequest{Shard: d.shard(), Drop: rapid.Bool().Draw(d.t, "drop")}
	if rarely(d, "any") {
		r.IDs = d.someIDs()
	}

	for _, id := range d.model().ClaimedIDs(r.Shard) {
		if rapid.Bool().Draw(d.t, "claimed") {
			r.IDs = append(r.IDs, id)
		}
	}

	compare(d, "Cancel", r,
		func(s ports.ShardStore, ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
			reply, err := s.Cancel(ctx, r)
			reply.Handled = 0 // a store may or may not count a call that changes nothing
			return reply, err
		})
}

func (d *driver) jobStep() ports.JobStep {
	now := d.model().Now()
	return ports.JobStep{
		Shard:  d.shard(),
		IDs:    d.someIDs(),
		Before: pick(d, "before", 0, 0, now+1, now, now.Add(-time.Second)),
		Failed: rapid.Bool().Draw(d.t, "failed"),
		Held:   rarely(d, "held"),
	}
}

// firstStep draws a step that names the first payloads of jobs, or other payloads.
func (d *driver) firstStep() ports.JobStep {
	s := d.jobStep()
	if rapid.Bool().Draw(d.t, "whole") {
		return s
	}

	s.IDs = rapid.SliceOfNDistinct(rapid.SampledFrom(randomIDs()), 0, 4, rapid.ID[string]).Draw(d.t, "ids")
	s.First = [][]byte{}
	for _, id := range s.IDs {
		first := d.data("first")
		found, err := d.model().Find(d.ctx, ports.FindRequest{Queue: s.Shard.Queue, ID: id, Payloads: 1})
		if err == nil && found.Queued != nil && !rarely(d, "another") {
			first = found.Queued.Payloads[0].Data
		}
		s.First = append(s.First, first)
	}
	return s
}

// someIDs draws a list of ids. It may be empty or name an id twice, but it is never nil.
func (d *driver) someIDs() []string {
	return rapid.SliceOfN(rapid.SampledFrom(randomIDs()), 0, 4).Draw(d.t, "ids")
}

func (d *driver) deadLetterStep() ports.DeadLetterStep {
	now := d.model().Now()
	s := ports.DeadLetterStep{
		Shard:  d.shard(),
		Before: pick(d, "before", now+1, now+1, now, 0),
		Limit:  pick(d, "limit", 0, 1, 2),
	}

	if rapid.Bool().Draw(d.t, "all") {
		if s.Keep = pick[int64](d, "keep", 0, 0, 1, 2); s.Keep == 0 {
			s.Group = d.storedGroup()
		}
		return s
	}

	s.DeadLetters = []ports.DeadLetterRef{}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(randomIDs()), 0, 4, rapid.ID[string]).Draw(d.t, "ids") {
		ref := ports.DeadLetterRef{ID: id}
		for range pick(d, "payloads", 0, 0, 1, 2, 9) {
			ref.Payloads = append(ref.Payloads, d.data("payload"))
		}
		s.DeadLetters = append(s.DeadLetters, ref)
	}
	return s
}

// storedGroup draws no group, or a group that dead letters may have.
func (d *driver) storedGroup() string {
	if rapid.Bool().Draw(d.t, "of a group") {
		return core.GroupName(pick(d, "group", append(randomGroups(), core.BuriedByHand)...))
	}
	return ""
}

// edit replaces the Data of a dead or a queued payload by other Data. The contract leaves open
// whether an edit with equal Old and New counts.
func (d *driver) edit() {
	at, id := d.someDeadLetter()
	payloads := d.distinctData(2)
	r := ports.EditRequest{
		Shard: at,
		ID:    id,
		Old:   payloads[0],
		New:   payloads[1],
	}
	if pick(d, "queued", false, true) {
		r.ID, r.Queued = pick(d, "id", randomIDs()...), true
	}
	compare(d, "Edit", r, ports.ShardStore.Edit)
}

// someDeadLetter returns the id of a dead letter, or an id without one.
func (d *driver) someDeadLetter() (core.Shard, string) {
	at := d.shard()
	if ids := d.model().DeadIDs(at); len(ids) > 0 {
		return at, pick(d, "dead", ids...)
	}
	return at, pick(d, "id", randomIDs()...)
}

// registry declares a queue again, perhaps with other options, or announces, drains or retires a
// server, records counts, tracks an id, or audits an action.
func (d *driver) registry() {
	switch pick(
		d, "registry", "declare", "announce", "announce", "announce", "drain", "drain", "retire", "record", "record",
		"audit", "track", "track",
	) {
	case "declare":
		r := declaration(d.queue())
		switch pick(d, "otherwise", "no", "shards", "index", "merge rule") {
		case "shards":
			r.Shards++
		case "index":
			r.IndexIDs = !r.IndexIDs
		case "merge rule":
			r.Merge = core.MergeRule{Stays: core.Highest, Keep: 3}
		}
		compare(d, "Declare", r, ports.ShardStore.Declare)
	case "announce":
		compare(d, "Announce", d.announcement(), ports.ShardStore.Announce)
	case "drain":
		r := storekit.DrainNodeRequest{Owner: d.owner(), Drain: rapid.Bool().Draw(d.t, "drain")}
		compareErr(d, "DrainNode", r, func(s ports.ShardStore, ctx context.Context, r storekit.DrainNodeRequest) error {
			return s.DrainNode(ctx, r.Owner, r.Drain)
		})
	case "retire":
		compareErr(d, "Retire", d.owner(), ports.ShardStore.Retire)
	case "record":
		compareErr(d, "Record", d.records(), ports.ShardStore.Record)
	case "track":
		r := ports.TrackRequest{
			Queue:   d.queue().Name,
			ID:      pick(d, "id", append(randomIDs(), "")...),
			Untrack: rapid.Bool().Draw(d.t, "untrack"),
		}
		compare(d, "Track", r, ports.ShardStore.Track)
	case "audit":
		a := ports.Action{
			ID:    pick(d, "action", "1", "2", "3"),
			Verb:  pick(d, "verb", "pause", "revive", ""),
			Ended: rapid.Bool().Draw(d.t, "ended"),
		}
		compareErr(d, "Audit", a, ports.ShardStore.Audit)
	}
}

func (d *driver) announcement() ports.AnnounceRequest {
	return ports.AnnounceRequest{
		TTL: pick(d, "TTL", randomTTLs()...),
		Node: ports.Node{
			Owner:    d.owner(),
			Name:     pick(d, "name", "east", "west"),
			Host:     "host",
			PID:      pick(d, "pid", 1, 2),
			Lanes:    5,
			Queues:   pick(d, "serves", nil, []string{"orders"}, []string{"orders", "mail"}),
			Version:  pick(d, "version", "", "v1"),
			Draining: rarely(d, "stops"),
			Status: ports.NodeStatus{
				Shards:  pick(d, "leases", 0, 1),
				Running: 2,
				Busy:    3,
				Claimed: 4,
				Longest: []ports.RunningJob{{ID: pick(d, "runs", randomIDs()...), Began: d.model().Now()}},
			},
		},
	}
}

// records draws a server's counts, in the present minute or another. Records with equal counts are
// equal in everything, because otherwise the order of the calls would decide which one stays.
func (d *driver) records() ports.RecordRequest {
	r := ports.RecordRequest{Owner: d.owner()}

	for range pick(d, "records", 1, 1, 2, 3) {
		n := pick(d, "counted", 0, 1, 2, 3)
		record := ports.Record{
			Queue: pick(d, "of", "orders", "orders", "mail"),
			Minute: d.model().Now().Minute().Add(pick(d, "minute",
				0, 0, -time.Minute, time.Hour, 2*time.Hour, -ports.HistoryKept)),
			Stats: core.Stats{Processed: uint64(n)},
		}

		for range n {
			record.Stats.ObserveWait(500 * time.Millisecond)
			record.Stats.ObserveRun(time.Minute)
		}
		r.Records = append(r.Records, record)
	}
	return r
}

// owner draws the owner of a server.
func (d *driver) owner() string { return pick(d, "owner", "n1", "n2", "n3") }
