package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
	"github.com/skeinq/skein/skeintest"
)

var errCut = errors.New("connection cut")

// pushThrough pushes n events through a store that fails, as a replay does, and returns how many
// entries the store was sent and how long it took.
func pushThrough(t *testing.T, entries int, faults ...skeintest.Fault) (sent int, took time.Duration, err error) {
	t.Helper()
	store := skeintest.NewFailingStore(memory.New(memory.Options{}))
	for _, f := range faults {
		store.Fail(f)
	}
	list := make([]skein.Entry[Event], entries)
	for i := range list {
		list[i] = skein.Entry[Event]{ID: fmt.Sprint("path-", i), Payload: Event{Position: int64(i + 1)}}
	}
	counted := storekit.Intercept(store, func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if push, ok := call.Request.(*ports.PushRequest); ok {
			sent += len(push.Entries)
		}
		return next(ctx)
	})
	r := newReplay(repository{}, options{store: "memory://", lanes: 1})
	began := time.Now()
	err = r.pushChunk(t.Context(), skein.NewClient(counted, skein.ClientOptions{}), list)
	return sent, time.Since(began), err
}

// leaves are pushes each of which stores one entry of those that the one before left.
func leaves(entries int) (faults []skeintest.Fault) {
	for left := entries - 1; left > 0; left-- {
		rest := make([]int, left)
		for i := range rest {
			rest[i] = i + 1
		}
		faults = append(faults, skeintest.Fault{Method: "Push", Times: 1, Err: &skein.PushError{Entries: rest, Err: errCut}})
	}
	return faults
}

// As long as each try stores something, pushing continues with the entries that are not known to
// be stored.
func TestPushGoesOnWhileItGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, _, err := pushThrough(t, 40, leaves(40)...)
		if err != nil || sent != 40*41/2 {
			t.Errorf("%d entries sent, error %v; want %d in 40 pushes, each of one entry less", sent, err, 40*41/2)
		}
	})
}

func TestPushGivesUp(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults []skeintest.Fault
		err    error
		within time.Duration
	}{
		{"after a minute of which nothing came", []skeintest.Fault{{Method: "Push", Err: errCut}}, errCut, pushPatience + time.Second},
		{"a minute after the last that was stored", slices.Concat(leaves(3)[:1], []skeintest.Fault{{Method: "Push", Err: errCut}}), errCut, pushPatience + time.Second},
		{"at once where pushing again can't help", []skeintest.Fault{{Method: "Push", Err: skein.ErrInvalidPayload}}, skein.ErrInvalidPayload, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, took, err := pushThrough(t, 3, test.faults...)
				if !errors.Is(err, test.err) || took > test.within || test.within > 0 && took < pushPatience {
					t.Errorf("error %v after %v; want %v within %v", err, took, test.err, test.within)
				}
			})
		})
	}
}
