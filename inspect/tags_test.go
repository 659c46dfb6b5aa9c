package inspect_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// pushTagged pushes a payload for an id with tags.
func (s *fixture) pushTagged(id string, list ...string) {
	s.t.Helper()
	tags, err := core.NewTags(list...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.pushEntries([]core.Entry{{ID: id, Payload: core.Payload{Data: []byte("p"), Score: 1}, Tags: tags}})
}

// Tags are shown in every view, and a match may ask for them, also without payloads.
func TestTagsAreShownAndMatched(t *testing.T) {
	s := newFixture(t)
	s.pushTagged("a", "vip", "import-7")
	s.pushTagged("b", "import-7")
	s.push("c", 0, "p")

	tagsOf := func() map[string][]string {
		all := map[string][]string{}
		for j := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{})) {
			all["queued "+j.ID] = j.Tags
		}
		for j := range must(t, s.Claimed(t.Context(), "orders", inspect.ListOptions{})) {
			all["claimed "+j.ID] = j.Tags
		}
		for d := range must(t, s.Morgue(t.Context(), "orders", inspect.ListOptions{})) {
			all["dead "+d.ID] = d.Tags
		}
		return all
	}

	want := map[string][]string{"queued a": {"import-7", "vip"}, "queued b": {"import-7"}, "queued c": nil}
	if diff := cmp.Diff(want, tagsOf()); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}

	imported := func(j inspect.QueuedJob) bool { return slices.Contains(j.Tags, "import-7") }
	r, err := s.Bury(t.Context(), "orders", inspect.FreshJobs(imported, inspect.BulkOptions{Payloads: -1}))
	if err != nil || r.Handled != 2 {
		t.Errorf("buried by a tag: %+v, %v; want 2", r, err)
	}
	vip := func(d inspect.DeadLetter) bool { return slices.Contains(d.Tags, "vip") }
	if r, err := s.Revive(t.Context(), "orders", inspect.AllDead(vip, inspect.BulkOptions{Payloads: -1})); err != nil ||
		r.Handled != 1 {
		t.Errorf("revived by a tag: %+v, %v; want 1", r, err)
	}

	s.claim()
	want = map[string][]string{"claimed a": {"import-7", "vip"}, "dead b": {"import-7"}, "claimed c": nil}
	if diff := cmp.Diff(want, tagsOf()); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}
