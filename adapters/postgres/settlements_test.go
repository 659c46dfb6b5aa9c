package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestSettlementColumnsKnowPositionsOfTheRequest(t *testing.T) {
	one, two := core.Receipt{Token: 1, Number: 1}, core.Receipt{Token: 1, Number: 2}
	s := newSettlementColumns([]core.Settlement{
		{ID: "a", Receipt: one},
		{ID: "a", Receipt: one},
		{ID: "a", Receipt: two},
		{ID: "b", Receipt: one},
	})

	if diff := cmp.Diff([]string{"a", "a", "b"}, s.ids); diff != "" {
		t.Errorf("ids that are sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 3}, s.skipped([]int32{3})); diff != "" {
		t.Errorf("skipped, with the one that came twice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 2}, s.positions([]int32{1, 2})); diff != "" {
		t.Errorf("deferred (-want +got):\n%s", diff)
	}
}

func TestSettlementsAreSentOnlyIfOneIsUnusual(t *testing.T) {
	plain := core.Settlement{ID: "a", Processed: true}
	back := core.Settlement{
		ID:     "b",
		Rest:   core.Requeue,
		Failed: true,
		Except: []core.PayloadDisposition{{Position: 2, Disposition: core.Bury}},
	}

	if s := newSettlementColumns([]core.Settlement{plain}); !s.usual() {
		t.Errorf("all are done whole and processed, but %+v is sent", s.rows)
	}
	if s := newSettlementColumns([]core.Settlement{plain, {ID: "c"}}); s.usual() || len(s.rows) != 2 ||
		!s.rows[0].Processed || s.rows[1].Processed {
		t.Errorf("all are done whole, the second is not processed, but %+v is sent", s.rows)
	}

	s := newSettlementColumns([]core.Settlement{plain, back})
	want := []settlement{
		{ID: "a", Processed: true, Dispositions: "0"},
		{
			ID:           "b",
			Failed:       true,
			Dispositions: "1121",
			Letter:       &letter{Group: core.GroupName("")},
		},
	}
	if diff := cmp.Diff(want, s.rows); diff != "" {
		t.Errorf("settlements (-want +got):\n%s", diff)
	}
}
