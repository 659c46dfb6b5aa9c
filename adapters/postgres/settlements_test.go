package postgres

import (
	"slices"
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

func TestSettlementColumnsHaveDispositionsOnlyWhereAJobStays(t *testing.T) {
	plain := core.Settlement{ID: "a", Processed: true}
	back := core.Settlement{
		ID:     "b",
		Rest:   core.Requeue,
		Failed: true,
		Except: []core.PayloadDisposition{{Position: 2, Disposition: core.Bury}},
	}

	if s := newSettlementColumns([]core.Settlement{plain}); s.dispositions != nil ||
		s.processed != nil || s.failed != nil {
		t.Errorf("all are done whole and processed, but the dispositions are %v, processed %v, failed %v",
			s.dispositions, s.processed, s.failed)
	}
	if s := newSettlementColumns([]core.Settlement{plain, {ID: "c"}}); s.dispositions != nil ||
		!slices.Equal(s.processed, []bool{true, false}) {
		t.Errorf("all are done whole, one of them not processed, but the dispositions are %v, processed %v",
			s.dispositions, s.processed)
	}

	s := newSettlementColumns([]core.Settlement{plain, back})
	want := []any{[][]byte{{0}, {1, 1, 2, 1}}, []bool{true, false}, []bool{false, true}}
	got := []any{s.dispositions, s.processed, s.failed}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dispositions, processed, failed (-want +got):\n%s", diff)
	}
}
