package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// erring fills a queue with dead letters, jobs that retry and held jobs of one error, and one job of
// another.
func erring(t *testing.T, store ports.ShardStore, queue string, shards, each int) {
	t.Helper()
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: shards}); err != nil {
		t.Fatal(err)
	}
	now := core.InstantOf(time.Now())
	payloads := []core.Payload{{Data: []byte("p")}}
	letters, jobs := map[int][]core.DeadLetter{}, map[int][]core.Job{}
	for n := range each {
		failures := core.Failures{{At: now.Add(-time.Hour), Node: "blue", Text: fmt.Sprintf("charge %d: 503", n)}}
		id := fmt.Sprint("dead-", n)
		at := core.ShardOf(id, shards)
		letters[at] = append(letters[at], core.DeadLetter{
			ID:        id,
			Payloads:  payloads,
			ChangedAt: now.Add(-time.Hour),
			Failures:  failures,
			Group:     "*pay.Error: charge #: #",
		})
		for _, state := range []core.State{
			{RetryCount: 1, PerformAt: now.Add(time.Hour), FirstPush: now.Add(-time.Hour), Failures: failures},
			{RetryCount: 1, PerformAt: core.MaxInstant, FirstPush: now.Add(-time.Hour), Failures: failures},
		} {
			id := fmt.Sprint(state.PerformAt == core.MaxInstant, "-", n)
			at := core.ShardOf(id, shards)
			jobs[at] = append(jobs[at], core.Job{ID: id, Payloads: payloads, State: state})
		}
	}

	for index := range shards {
		shard := core.Shard{Queue: queue, Index: index}
		for _, r := range []ports.ImportRequest{{DeadLetters: letters[index]}, {Jobs: jobs[index]}} {
			r.Shard, r.Shards, r.Generation = shard, shards, 1
			if len(r.DeadLetters)+len(r.Jobs) == 0 {
				continue
			}
			if _, err := store.Import(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Errors are one group over queues and states on every store, an action on a part handles exactly
// what the part counts, and an edit of a queued payload keeps the rest of the job.
func TestErrorsOnEveryStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ports.ShardStore) {
		erring(t, store, "orders", 4, 20)
		erring(t, store, "mails", 1, 3)
		i := inspect.New(store, inspect.Options{})
		found, err := i.Errors(t.Context(), inspect.ErrorsOptions{Entries: 2})
		if err != nil || len(found.Groups) != 1 || found.Read != 69 || found.Of != 69 {
			t.Fatalf("%+v, %v", found, err)
		}
		g := found.Groups[0]
		if g.Name != "charge #: #" || g.Dead != 23 || g.Retrying != 23 || g.Held != 23 || g.Sample || len(g.Parts) != 4 ||
			len(g.Entries) != 2 || g.Steps[inspect.ErrorSteps-3] != 69 {
			t.Errorf("%+v", g)
		}

		for _, p := range g.Parts {
			of := inspect.BulkOptions{Group: p.Group, DryRun: true}
			if p.Dead > 0 {
				r, err := i.Revive(t.Context(), p.Queue, inspect.AllDead(nil, of))
				if err != nil || int64(r.Handled) != p.Dead {
					t.Errorf("a revive of %+v: %+v, %v", p, r, err)
				}
				continue
			}
			of.DryRun = false
			held := func(j inspect.QueuedJob) bool { return j.Held }
			r, err := i.Bury(t.Context(), p.Queue, inspect.FailedJobs(held, of))
			if err != nil || int64(r.Handled) != p.Held {
				t.Errorf("a bury of the held of %+v: %+v, %v", p, r, err)
			}
			r, err = i.RunNow(t.Context(), p.Queue, inspect.AllJobs(nil, of))
			if err != nil || int64(r.Handled) != p.Retrying {
				t.Errorf("a run of %+v: %+v, %v", p, r, err)
			}
		}

		edit := func(string, core.Payload) ([]byte, bool, error) { return []byte("q"), true, nil }
		if r, err := i.EditJob(t.Context(), "mails", "false-0", nil, edit); err != nil || r.Handled != 1 {
			t.Errorf("an edit: %+v, %v", r, err)
		}
		job, err := i.Find(t.Context(), "mails", "false-0")
		if err != nil || job.Queued == nil || string(job.Queued.Payloads[0].Data) != "q" || job.Queued.Retries != 2 {
			t.Errorf("%+v, %v", job.Queued, err)
		}
	})
}
