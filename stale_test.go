package skein_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// version is a state of an entity.
type version struct{ Number int }

// versions returns a queue of versions that drops stale ones.
func versions(change func(*skein.QueueOptions[version])) *skein.Queue[version] {
	o := skein.QueueOptions[version]{
		Shards:  1,
		Merge:   skein.Latest(1),
		Score:   func(v version) float64 { return float64(v.Number) },
		Keep:    skein.Keep{Age: time.Hour},
		Stale:   skein.DropStale,
		Backoff: func(int) time.Duration { return time.Minute },
	}
	if change != nil {
		change(&o)
	}
	return skein.NewQueue("products", o)
}

// pushVersions pushes versions of an id, each by itself, and returns what they met.
func pushVersions(
	t *testing.T, q *skein.Queue[version], store skein.Store, id string, numbers ...int,
) (all skein.Met) {
	t.Helper()
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, n := range numbers {
		var met skein.Met
		check(t, q.Push(t.Context(), client, id, version{n}, skein.Tell(&met)))
		all.New += met.New
		all.Merged += met.Merged
		all.Duplicate += met.Duplicate
		all.Superseded += met.Superseded
		all.Stale += met.Stale
	}
	return all
}

// staleCount returns how many payloads of the queue were stale.
func staleCount(t *testing.T, store skein.Store) int64 {
	t.Helper()
	stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), "products")
	check(t, err)
	return stats[0].Stale
}

func TestAnOlderVersionThatIsPushedWhileANewerOneRunsIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		products := versions(nil)
		var handled []int
		server := skein.NewServer(store, skein.ServerOptions{}, products.Each(
			func(_ context.Context, id string, v version) error {
				handled = append(handled, v.Number)
				if v.Number == 5 { // 4 comes late, and 5 is delivered again
					if met := pushVersions(t, products, store, id, 4, 5); met.Stale != 0 {
						t.Errorf("before 5 is done, the pushes met %+v", met)
					}
				}
				return nil
			}))

		pushVersions(t, products, store, "42", 5)
		_, err := server.RunDue(t.Context())
		check(t, err)
		if !slices.Equal(handled, []int{5}) {
			t.Errorf("handled %v", handled)
		}
		if n := staleCount(t, store); n != 1 { // 4 was superseded by 5, which waited then
			t.Errorf("%d payloads are stale, want 1", n)
		}

		if met := pushVersions(t, products, store, "42", 3, 5, 6); met != (skein.Met{New: 1, Stale: 2}) {
			t.Errorf("once 5 is done, the pushes met %+v", met)
		}
		_, err = server.RunDue(t.Context())
		check(t, err)
		if !slices.Equal(handled, []int{5, 6}) {
			t.Errorf("handled %v then", handled)
		}
		if n := staleCount(t, store); n != 3 {
			t.Errorf("%d payloads are stale then, want 3", n)
		}
	})
}

func TestVersionsOfOneJobAreStaleOnceALaterOneIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		products := versions(func(o *skein.QueueOptions[version]) { o.Merge = skein.Newest() })
		var handled []string
		boom := errors.New("boom")
		server := skein.NewServer(store, skein.ServerOptions{}, products.JobHandler(
			func(_ context.Context, job *skein.Job[version]) error {
				var numbers []string
				for _, v := range job.Values() {
					numbers = append(numbers, fmt.Sprint(v.Number))
				}
				handled = append(handled, fmt.Sprint(strings.Join(numbers, " "), " retries ", job.Retries))
				if len(handled) == 1 {
					job.Payloads[1].Done() // version 2; then the job fails with 1 and 3
					return boom
				}
				return nil
			}))

		pushVersions(t, products, store, "42", 1, 2, 3)
		_, err := server.RunDue(t.Context())
		check(t, err)
		found, err := inspect.New(store, inspect.Options{}).Find(t.Context(), "products", "42")
		check(t, err)
		if found.Past != nil || found.Mark == nil || *found.Mark != 2 {
			t.Errorf("after a failed run the id has the record %v and the mark %v", found.Past, found.Mark)
		}

		time.Sleep(2 * time.Minute)
		_, err = server.RunDue(t.Context())
		check(t, err)
		// The count of retries belonged to 1, which is dropped.
		if want := []string{"1 2 3 retries 0", "3 retries 0"}; !slices.Equal(handled, want) {
			t.Errorf("handled %q, want %q", handled, want)
		}
		if n := staleCount(t, store); n != 1 {
			t.Errorf("%d payloads are stale, want 1", n)
		}
	})
}

func TestEachPayloadOfAnEachRaisesTheMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		products := versions(func(o *skein.QueueOptions[version]) { o.Merge = skein.Latest(9) })
		var handled []int
		server := skein.NewServer(store, skein.ServerOptions{}, products.Each(
			func(_ context.Context, _ string, v version) error {
				handled = append(handled, v.Number)
				if v.Number == 3 && len(handled) == 3 {
					return errors.New("boom")
				}
				return nil
			}))

		pushVersions(t, products, store, "42", 1, 2, 3)
		_, err := server.RunDue(t.Context())
		check(t, err)
		if met := pushVersions(t, products, store, "42", 1, 2); met != (skein.Met{Stale: 2}) {
			t.Errorf("pushes of versions that are done met %+v", met)
		}
		time.Sleep(2 * time.Minute)
		_, err = server.RunDue(t.Context())
		check(t, err)
		if !slices.Equal(handled, []int{1, 2, 3, 3}) {
			t.Errorf("handled %v", handled)
		}
	})
}

// The end of each payload of a recovered job raises the mark before the next payload begins, so that
// another crash does not repeat it.
func TestThePayloadsOfARecoveredJobRaiseTheMarkOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		products := versions(func(o *skein.QueueOptions[version]) { o.Merge = skein.Newest() })
		pushVersions(t, products, store, "42", 1, 2)

		shard := core.Shard{Queue: "products"}
		acquired, err := store.Acquire(t.Context(), ports.AcquireRequest{
			Shard: shard, Shards: 1, Generation: 1, Owner: "crashes", Attempt: 1, TTL: time.Second,
		})
		check(t, err)
		_, err = store.Turn(t.Context(), ports.TurnRequest{
			Lease:  ports.Lease{Shard: shard, Owner: "crashes", Token: acquired.Token},
			Number: 1, TTL: time.Second, Want: 1,
		})
		check(t, err)
		time.Sleep(2 * time.Second)

		var marks []float64
		_, err = skein.NewServer(store, skein.ServerOptions{}, products.Each(
			func(ctx context.Context, id string, v version) error {
				found, err := store.Find(ctx, ports.FindRequest{Queue: "products", ID: id})
				marks = append(marks, found.Mark.Score)
				return err
			})).RunDue(t.Context())
		check(t, err)
		if !slices.Equal(marks, []float64{0, 1}) {
			t.Errorf("the marks when the payloads began are %v", marks)
		}
	})
}

// A stale job takes no slot of its rate.
func TestStaleJobsTakeNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		asked := 0
		products := versions(func(o *skein.QueueOptions[version]) {
			o.RateBy = func(string, version) (string, skein.Rate) {
				asked++
				return "tenant", skein.Rate{Count: 1, Per: time.Minute}
			}
		})
		plain := versions(func(o *skein.QueueOptions[version]) { o.Stale = skein.TakeStale })
		server := skein.NewServer(store, skein.ServerOptions{}, products.Each(
			func(context.Context, string, version) error { return nil }))
		pushVersions(t, products, store, "42", 5)
		_, err := server.RunDue(t.Context())
		check(t, err)
		// A program that does not drop stale payloads has pushed one.
		pushVersions(t, plain, store, "42", 4)
		_, err = server.RunDue(t.Context())
		check(t, err)
		if n := staleCount(t, store); asked != 1 || n != 1 {
			t.Errorf("the rate was asked %d times, and %d payloads are stale", asked, n)
		}
	})
}

func TestARevivedOlderVersionIsRefusedUnlessForced(t *testing.T) {
	for name, selection := range map[string]inspect.DeadLetterSelection{
		"by id":      inspect.DeadIDs("42"),
		"by payload": inspect.DeadPayloads(inspect.DeadLetterPayloads{ID: "42", Payloads: [][]byte{[]byte(`{"Number":4}`)}}),
		"all":        inspect.AllDead(nil, inspect.BulkOptions{}),
		"those that match": inspect.AllDead(
			func(d inspect.DeadLetter) bool { return d.ID == "42" }, inspect.BulkOptions{}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{})
				products := versions(nil)
				var handled []int
				server := skein.NewServer(store, skein.ServerOptions{}, products.Each(
					func(_ context.Context, _ string, v version) error {
						handled = append(handled, v.Number)
						if len(handled) == 1 {
							return skein.Bury(errors.New("no such product"))
						}
						return nil
					}))
				run := func() {
					t.Helper()
					_, err := server.RunDue(t.Context())
					check(t, err)
				}
				inspector := inspect.New(store, inspect.Options{})
				pushVersions(t, products, store, "42", 4)
				run()
				pushVersions(t, products, store, "42", 5)
				run()
				time.Sleep(time.Second)

				result, err := inspector.Revive(t.Context(), "products", selection)
				check(t, err)
				if result.Handled != 0 || result.Stale != 1 {
					t.Errorf("the revive is %+v", result)
				}
				run()
				result, err = inspector.Revive(t.Context(), "products", selection.Force())
				check(t, err)
				if result.Handled != 1 || result.Stale != 0 {
					t.Errorf("the forced revive is %+v", result)
				}
				if past := pastOf(t, store, "products", "42"); past != nil {
					t.Errorf("the store has not forgotten %+v", past)
				}
				run()
				if !slices.Equal(handled, []int{4, 5, 4}) {
					t.Errorf("handled %v", handled)
				}
				// From then on the mark is that of the revived version.
				if met := pushVersions(t, products, store, "42", 4, 5); met != (skein.Met{Stale: 1, New: 1}) {
					t.Errorf("pushes then met %+v", met)
				}
			})
		})
	}
}

func TestOptionsWithWhichNothingCanBeStale(t *testing.T) {
	for name, change := range map[string]func(*skein.QueueOptions[version]){
		"Keep":   func(o *skein.QueueOptions[version]) { o.Keep = skein.Keep{} },
		"Latest": func(o *skein.QueueOptions[version]) { o.Merge = skein.MergeRule{} },
		"Newest": func(o *skein.QueueOptions[version]) { o.Merge = skein.Every() },
		"Score":  func(o *skein.QueueOptions[version]) { o.Score = nil },
		"Stale":  func(o *skein.QueueOptions[version]) { o.Stale = 7 },
	} {
		q := versions(change)
		err := q.Push(t.Context(), skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{}), "1", version{1})
		if !errors.Is(err, skein.ErrInvalidQueue) || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
