package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func pushed(id, data string, score float64, w core.When) core.Entry {
	return core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: score}, When: w}
}

// described is a statement as ids with their payload and time, and then the further payloads of
// ids.
func described(st *pushStatement) (text string) {
	for i, id := range st.ids {
		text += fmt.Sprintf("%d/%s=%s", st.index[i], id, st.data[i])
		if st.at != nil {
			text += fmt.Sprintf("@%d+%d", st.at[i], st.delay[i])
		}
		text += " "
	}
	for i, id := range st.more.ids {
		text += fmt.Sprintf("| %s=%s:%g ", id, st.more.data[i], st.more.scores[i])
	}
	return text
}

func TestPushStatements(t *testing.T) {
	now := core.When{}
	tests := []struct {
		name    string
		rule    core.RuleKind
		entries []core.Entry
		want    []string
	}{
		{"nothing", core.Keep, nil, []string{""}},
		{"in order of id", core.Keep,
			[]core.Entry{pushed("b", "x", 0, now), pushed("a", "y", 0, now)},
			[]string{"0/a=y 0/b=x "}},
		{"times, where one has any", core.Keep,
			[]core.Entry{
				pushed("a", "x", 0, now),
				pushed("b", "x", 0, core.At(7)),
				pushed("c", "x", 0, core.In(time.Second)),
			},
			[]string{"0/a=x@-1+0 0/b=x@7+0 0/c=x@-1+1000000 "}},
		{"an id again adds its payload", core.Keep,
			[]core.Entry{pushed("a", "x", 2, now), pushed("b", "x", 0, now), pushed("a", "y", 3, core.At(7))},
			[]string{"0/a=x 0/b=x | a=y:3 "}},
		{"a payload again keeps the smaller score", core.Keep,
			[]core.Entry{pushed("a", "x", 2, now), pushed("a", "y", 3, now), pushed("a", "y", 1, now)},
			[]string{"0/a=y | a=x:2 "}},
		{"an id again meets the rule again", core.Earliest,
			[]core.Entry{pushed("a", "x", 2, core.At(9)), pushed("b", "x", 0, now), pushed("a", "y", 3, core.At(7))},
			[]string{"0/a=x@9+0 0/b=x@-1+0 ", "0/a=y@7+0 "}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ports.PushRequest{Queue: "orders", Shards: 1, Rule: core.PushRule{Kind: tt.rule}, Entries: tt.entries}
			var got []string
			for _, st := range pushStatements(&r, storekit.Route(nil, r.Entries, r.Shards)) {
				got = append(got, described(st))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("statements (-want +got):\n%s", diff)
			}
		})
	}
}

// A statement takes whole shards while they fit, and never less than MaxPush
// entries of one.
func TestStatementSize(t *testing.T) {
	tests := []struct {
		name   string
		shards []int // how many entries each shard has
		want   []int
	}{
		{"nothing", nil, nil},
		{"one", []int{1}, []int{1}},
		{"several shards that fit", []int{500, 500, 500, 500}, []int{2000}},
		{"one shard more than fits", []int{900, 900, 900}, []int{1800, 900}},
		{"a shard that is too large by itself", []int{1, 4500}, []int{1, 2000, 2000, 500}},
		{"just as many as fit", []int{2000, 1}, []int{2000, 1}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var list []storekit.Routed
			for shard, n := range tt.shards {
				for range n {
					list = append(list, storekit.Routed{Shard: shard, Position: len(list)})
				}
			}

			var got []int
			for len(list) > 0 {
				n := statementSize(list)
				got, list = append(got, n), list[n:]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("sizes (-want +got):\n%s", diff)
			}
		})
	}
}
