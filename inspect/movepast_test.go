package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// bringPast puts records and marks into a queue.
func (s *fixture) bringPast(queue string, shards int, records, marks []core.Past) {
	s.t.Helper()
	put := func(id string, set func(r *ports.ImportRequest)) {
		at := core.Shard{Queue: queue, Index: core.ShardOf(id, shards)}
		r := ports.ImportRequest{Shard: at, Shards: shards, Generation: 1}
		set(&r)
		if _, err := s.store.Import(s.t.Context(), r); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, p := range records {
		put(p.ID, func(r *ports.ImportRequest) { r.Past = []core.Past{p} })
	}
	for _, m := range marks {
		put(m.ID, func(r *ports.ImportRequest) { r.Marks = []core.Past{m} })
	}
}

// knowledge returns what a queue keeps of ids: for each the record and the mark, without ids of which
// it keeps nothing.
func (s *fixture) knowledge(queue string, ids []string) map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, id := range ids {
		found, err := s.store.Find(s.t.Context(), ports.FindRequest{Queue: queue, ID: id})
		if err != nil {
			s.t.Fatal(err)
		}
		if p := found.Past; p != nil {
			all[id] = fmt.Sprintf("%d %v %v %q %d %d %q", p.DoneAt, p.Took, p.Score, p.Node, p.Payloads, p.Attempt, p.Result)
		}
		if found.Mark.OK {
			all[id] += fmt.Sprint(" mark ", found.Mark.Score)
		}
	}
	return all
}

// known fills the queue with records and marks of ids with and without jobs and dead letters.
func (s *fixture) known() (ids []string) {
	s.t.Helper()
	at := core.InstantOf(epoch)
	var records, marks []core.Past
	for n, id := range append(numbered("j", 40), numbered("gone", 300)...) {
		p := core.Past{
			ID:       id,
			DoneAt:   at.Add(-time.Duration(n) * time.Second),
			Took:     time.Duration(n) * time.Millisecond,
			Score:    float64(n),
			Raises:   n%2 == 0,
			Payloads: n + 1,
			Attempt:  1,
			Node:     "web-1",
		}
		if n%3 == 0 {
			p.Result = bytes.Repeat([]byte{byte(n)}, n)
		}
		if n%5 != 1 {
			records = append(records, p)
		}
		if n%7 == 1 {
			marks = append(marks, core.Past{ID: id, DoneAt: p.DoneAt, Score: float64(n) + 0.5})
		}
		ids = append(ids, id)
	}
	s.bringPast("orders", fixtureShards, records, marks)
	s.pushAll(numbered("j", 40)...)
	return ids
}

func TestMoveCopiesRecords(t *testing.T) {
	s := newFixture(t)
	ids := s.known()
	s.target(core.MergeRule{})
	want := s.knowledge("orders", ids)
	if len(want) < 250 {
		t.Fatalf("only %d ids are known", len(want))
	}

	for range 2 { // a move that is repeated changes nothing more
		r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		if r.Checkpoint != "" {
			t.Errorf("the move has not ended: %+v", r)
		}
		for _, queue := range []string{"moved", "orders"} {
			if diff := cmp.Diff(want, s.knowledge(queue, ids)); diff != "" {
				t.Errorf("what %s knows (-want +got):\n%.2000s", queue, diff)
			}
		}
	}
}

func TestMoveOfSomeCopiesTheirRecords(t *testing.T) {
	moved := []string{nth("j", 3), nth("j", 7), nth("j", 22)}
	all, dead := inspect.BulkOptions{Filter: "some"}, inspect.BulkOptions{}
	for what, move := range map[string]func(s *fixture) (inspect.Result, error){
		"by ids": func(s *fixture) (inspect.Result, error) {
			return s.Move(s.t.Context(), "orders", movedTo, inspect.JobIDs(moved...))
		},
		"by match": func(s *fixture) (inspect.Result, error) {
			match := func(j inspect.QueuedJob) bool { return slices.Contains(moved, j.ID) }
			return s.Move(s.t.Context(), "orders", movedTo, inspect.AllJobs(match, all))
		},
		"of the morgue": func(s *fixture) (inspect.Result, error) {
			if _, err := s.Bury(s.t.Context(), "orders", inspect.JobIDs(moved...)); err != nil {
				s.t.Fatal(err)
			}
			s.advance(time.Second)
			return s.MoveMorgue(s.t.Context(), "orders", movedTo, inspect.AllDead(nil, dead))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newFixture(t)
			ids := s.known()
			s.target(core.MergeRule{})
			want := s.knowledge("orders", ids)
			maps.DeleteFunc(want, func(id, _ string) bool { return !slices.Contains(moved, id) })
			if len(want) != len(moved) {
				t.Fatalf("of the moved ids are known %v", want)
			}

			if r, err := move(s); err != nil || r.Handled != len(moved) {
				t.Fatalf("moved %d: %v", r.Handled, err)
			}
			if diff := cmp.Diff(want, s.knowledge("moved", ids)); diff != "" {
				t.Errorf("what the target knows (-want +got):\n%s", diff)
			}
		})
	}
}

// A stale version that is pushed to the new queue is not newer than what was done in the old one.
func TestMoveKeepsTheLaterRecordAndTheHighestMark(t *testing.T) {
	s := newFixture(t)
	at := core.InstantOf(epoch)
	record := func(seconds int, score float64) []core.Past {
		return []core.Past{{ID: "a", DoneAt: at + core.Instant(seconds*1e6), Score: score, Raises: true}}
	}
	s.bringPast("orders", fixtureShards, record(1, 9), nil)
	s.target(core.MergeRule{})
	s.bringPast("moved", movedShards, record(2, 5), nil)

	if _, err := s.Move(t.Context(), "orders", movedTo, inspect.JobIDs("a")); err != nil {
		t.Fatal(err)
	}
	found, err := s.Find(t.Context(), "moved", "a")
	if err != nil {
		t.Fatal(err)
	}
	if found.Past.Score != 5 || found.Mark == nil || *found.Mark != 9 {
		t.Errorf("the record has the score %v and the mark is %v; want 5 and 9", found.Past.Score, found.Mark)
	}
}

func TestMoveCopiesLargeResults(t *testing.T) {
	s := newFixture(t)
	var records []core.Past
	ids := numbered("r", 150)
	for _, id := range ids {
		records = append(records, core.Past{
			ID: id, DoneAt: core.InstantOf(epoch), Result: bytes.Repeat([]byte("r"), core.MaxResultBytes),
		})
	}
	s.declare("narrow", 1)
	s.bringPast("orders", fixtureShards, records, nil)
	if err := s.store.Pause(t.Context(), "narrow"); err != nil {
		t.Fatal(err)
	}

	to := inspect.Target{Queue: "narrow"}
	if _, err := s.Move(t.Context(), "orders", to, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.knowledge("orders", ids), s.knowledge("narrow", ids)); diff != "" {
		t.Errorf("what the target knows (-want +got):\n%.2000s", diff)
	}
}

// An interrupted copy of records is made again by the continued move.
func TestMoveContinuesWithRecords(t *testing.T) {
	s := newFixture(t)
	ids := s.known()
	s.target(core.MergeRule{})
	want := s.knowledge("orders", ids)

	h, pages := s.intercept(), 0
	ctx, cancel := context.WithCancel(t.Context())
	h.before = func(method string) error {
		if method != "Past" {
			return nil
		}
		if pages++; pages == 4 {
			cancel()
		}
		return ctx.Err()
	}
	var o inspect.BulkOptions
	r, err := s.Move(ctx, "orders", movedTo, inspect.AllJobs(nil, o))
	h.before = nil
	if !errors.Is(err, context.Canceled) || r.Checkpoint == "" {
		t.Fatalf("the interrupted move: %+v, %v", r, err)
	}

	o.Continue = r.Checkpoint
	if _, err = s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, o)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.knowledge("moved", ids)); diff != "" {
		t.Errorf("what the target knows (-want +got):\n%.2000s", diff)
	}
}
