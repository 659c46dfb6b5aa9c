package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// pushStatement is one call of the function push: an entry for each id, in order
// of shard and id, and further payloads for some.
type pushStatement struct {
	columns
	at, delay []int64 // nil if all are due now
	more      columns
}

// columns are payloads with the shard and id that they belong to.
type columns struct {
	index  []int32
	ids    []string
	scores []float64
	data   [][]byte
	meta   [][]byte
}

func (c *columns) add(shard int, id string, p core.Payload) {
	if p.Data == nil {
		p.Data = []byte{}
	}
	c.index = append(c.index, int32(shard))
	c.ids = append(c.ids, id)
	c.scores = append(c.scores, core.NormalScore(p.Score))
	c.data = append(c.data, p.Data)
	c.meta = append(c.meta, p.Meta)
}

// pushArgs is how many of the parameters of pushSQL pushByRuleSQL has: all but those of more.
const pushArgs = 13

// args returns the parameters of pushSQL.
func (st *pushStatement) args(s *Store, r *ports.PushRequest) []any {
	return []any{
		textOrNone(r.Queue), int32(r.Shards), r.Generation, s.now(),
		int16(r.Rule.Kind), r.Rule.MaxDelay().Microseconds(),
		st.index, st.ids, st.at, st.delay, st.scores, st.data, st.meta,
		st.more.index, st.more.ids, st.more.scores, st.more.data, st.more.meta,
	}
}

// pushStatements returns the statements that push the entries, in order. If the rule keeps the
// time, further entries for an id only add their payloads.
func pushStatements(r *ports.PushRequest, list []storekit.Routed) []*pushStatement {
	list = inOrderOfIDs(r, list)
	statements := []*pushStatement{{}}
	for len(list) > 0 {
		n := 1
		for n < len(list) && r.Entries[list[n].Position].ID == r.Entries[list[0].Position].ID {
			n++
		}
		same := list[:n]
		list = list[n:]

		if r.Rule.Kind == core.Keep {
			statements[0].addOnce(r, same)
			continue
		}

		for i, at := range same {
			if i == len(statements) {
				statements = append(statements, &pushStatement{})
			}
			statements[i].addOnce(r, []storekit.Routed{at})
		}
	}
	return statements
}

// inOrderOfIDs returns the entries in order of shard and id, those of an id in order of the call.
func inOrderOfIDs(r *ports.PushRequest, list []storekit.Routed) []storekit.Routed {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b storekit.Routed) int {
		return cmp.Or(
			a.Shard-b.Shard,
			strings.Compare(r.Entries[a.Position].ID, r.Entries[b.Position].ID),
			a.Position-b.Position,
		)
	})
	return list
}

// addOnce adds entries of one id: the first of their payloads as a job at the
// first entry's time, the rest as further payloads.
func (st *pushStatement) addOnce(r *ports.PushRequest, same []storekit.Routed) {
	first := &r.Entries[same[0].Position]
	st.time(first.When)
	if len(same) == 1 {
		st.add(same[0].Shard, first.ID, first.Payload)
		return
	}

	payloads := make([]core.Payload, len(same))
	for i, at := range same {
		payloads[i] = r.Entries[at.Position].Payload
		payloads[i].Score = core.NormalScore(payloads[i].Score)
	}

	set := core.NewPayloadSet(payloads)
	for i, p := range set.List() {
		if i == 0 {
			st.add(same[0].Shard, first.ID, p)
		} else {
			st.more.add(same[0].Shard, first.ID, p)
		}
	}
}

// time adds when the job that is added next may run.
func (st *pushStatement) time(w core.When) {
	if w == (core.When{}) && st.at == nil {
		return
	}
	for len(st.at) < len(st.ids) {
		st.at, st.delay = append(st.at, notFixed), append(st.delay, 0)
	}

	at, fixed := w.Fixed()
	if !fixed {
		at = notFixed
	}
	st.at, st.delay = append(st.at, int64(at)), append(st.delay, w.Delay().Microseconds())
}

// notFixed is sent as the PerformAt of an entry that has a delay instead.
const notFixed = -1
