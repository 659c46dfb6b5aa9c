package postgres

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestSettledTellsPositionsOfTheRequest(t *testing.T) {
	one, two := core.Receipt{Token: 1, Number: 1}, core.Receipt{Token: 1, Number: 2}
	s := newSettled([]core.Settlement{{ID: "a", Receipt: one}, {ID: "a", Receipt: one}, {ID: "a", Receipt: two}, {ID: "b", Receipt: one}})
	if diff := cmp.Diff([]string{"a", "a", "b"}, s.ids); diff != "" {
		t.Errorf("ids that are sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 3}, s.skipped([]int32{3})); diff != "" {
		t.Errorf("skipped, with the one that came twice (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 2}, s.places([]int32{1, 2})); diff != "" {
		t.Errorf("held (-want +got):\n%s", diff)
	}
}

func TestSettledSendsFatesOnlyWhereAJobStays(t *testing.T) {
	plain := core.Settlement{ID: "a", Processed: true}
	back := core.Settlement{ID: "b", Rest: core.Requeue, Failed: true, Except: []core.PayloadDisposition{{Position: 2, Disposition: core.Bury}}}
	if s := newSettled([]core.Settlement{plain}); s.rest != nil || s.flags != nil {
		t.Errorf("all are gone whole and processed, but the fates are %v, the flags %v", s.rest, s.flags)
	}
	if s := newSettled([]core.Settlement{plain, {ID: "c"}}); s.rest != nil || !slices.Equal(s.flags, []int16{processedFlag, 0}) {
		t.Errorf("all are gone whole, one of them not processed, but the fates are %v, the flags %v", s.rest, s.flags)
	}
	s := newSettled([]core.Settlement{plain, back})
	want := []any{[]int16{0, 1}, []int32{2}, []int32{2}, []int16{2}, []int16{processedFlag, failedFlag}}
	if diff := cmp.Diff(want, []any{s.rest, s.place, s.position, s.dispositions, s.flags}); diff != "" {
		t.Errorf("rest, place, position, dispositions, flags (-want +got):\n%s", diff)
	}
}
