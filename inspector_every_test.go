package skein_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
)

// everyCall is each call on a queue, with something to do in it.
func everyCall(i *skein.Inspector, queue string) map[string]func(context.Context) error {
	ids, o := []string{"order-1"}, skein.BulkOptions{}
	all := func(skein.DeadLetter) bool { return true }
	some := []skein.DeadLetterPayloads{{ID: "order-1", Payloads: [][]byte{[]byte("p")}}}
	edit := func(string, core.Payload) ([]byte, bool, error) { return []byte("q"), true, nil }
	result := func(_ skein.Result, err error) error { return err }
	return map[string]func(context.Context) error{
		"Stats": func(ctx context.Context) error { _, err := i.Stats(ctx, queue); return err },
		"History": func(ctx context.Context) error {
			_, err := i.History(ctx, queue, time.Time{}, time.Time{})
			return err
		},
		"Find": func(ctx context.Context) error { _, err := i.Find(ctx, queue, "order-1"); return err },
		"Jobs": func(ctx context.Context) (last error) {
			for _, last = range i.Jobs(ctx, queue, skein.ListOptions{}) {
			}
			return last
		},
		"Claimed": func(ctx context.Context) (last error) {
			for _, last = range i.Claimed(ctx, queue, skein.ListOptions{}) {
			}
			return last
		},
		"Morgue": func(ctx context.Context) (last error) {
			for _, last = range i.Morgue(ctx, queue, skein.ListOptions{}) {
			}
			return last
		},
		"Pause":                func(ctx context.Context) error { return i.Pause(ctx, queue) },
		"Resume":               func(ctx context.Context) error { return i.Resume(ctx, queue) },
		"Forget":               func(ctx context.Context) error { return i.Forget(ctx, queue) },
		"Recount":              func(ctx context.Context) error { _, err := i.Recount(ctx, queue); return err },
		"RunNow":               func(ctx context.Context) error { return result(i.RunNow(ctx, queue, ids, o)) },
		"RunAllNow":            func(ctx context.Context) error { return result(i.RunAllNow(ctx, queue, o)) },
		"Bury":                 func(ctx context.Context) error { return result(i.Bury(ctx, queue, ids, o)) },
		"BuryFailed":           func(ctx context.Context) error { return result(i.BuryFailed(ctx, queue, o)) },
		"Delete":               func(ctx context.Context) error { return result(i.Delete(ctx, queue, ids, o)) },
		"DeleteFailed":         func(ctx context.Context) error { return result(i.DeleteFailed(ctx, queue, o)) },
		"Cancel":               func(ctx context.Context) error { return result(i.Cancel(ctx, queue, ids, skein.CancelModeDrop, o)) },
		"Revive":               func(ctx context.Context) error { return result(i.Revive(ctx, queue, ids, o)) },
		"RevivePayloads":       func(ctx context.Context) error { return result(i.RevivePayloads(ctx, queue, some, o)) },
		"ReviveAll":            func(ctx context.Context) error { return result(i.ReviveAll(ctx, queue, nil, o)) },
		"ReviveAll that match": func(ctx context.Context) error { return result(i.ReviveAll(ctx, queue, all, o)) },
		"Purge":                func(ctx context.Context) error { return result(i.Purge(ctx, queue, ids, o)) },
		"PurgePayloads":        func(ctx context.Context) error { return result(i.PurgePayloads(ctx, queue, some, o)) },
		"PurgeAll":             func(ctx context.Context) error { return result(i.PurgeAll(ctx, queue, nil, o)) },
		"PurgeAll that match":  func(ctx context.Context) error { return result(i.PurgeAll(ctx, queue, all, o)) },
		"Edit":                 func(ctx context.Context) error { return result(i.Edit(ctx, queue, ids, edit, o)) },
		"EditPayloads":         func(ctx context.Context) error { return result(i.EditPayloads(ctx, queue, some, edit, o)) },
		"EditAll":              func(ctx context.Context) error { return result(i.EditAll(ctx, queue, nil, edit, o)) },
	}
}

func TestEveryCallKnowsAnUnknownQueue(t *testing.T) {
	for name, call := range everyCall(newSite(t).Inspector, "nowhere") {
		if err := call(t.Context()); !errors.Is(err, skein.ErrUnknownQueue) {
			t.Errorf("%s: %v; want ErrUnknownQueue", name, err)
		}
	}
}

func TestEveryCallHeedsItsContext(t *testing.T) {
	s := newSite(t)
	s.dead("order-1")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range everyCall(s.Inspector, "orders") {
		if err := call(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v; want context.Canceled", name, err)
		}
	}
	for name, call := range map[string]func() error{
		"Queues": func() error { _, err := s.Queues(ended); return err },
		"Nodes":  func() error { _, err := s.Nodes(ended); return err },
		"Stats":  func() error { _, err := s.Stats(ended); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v; want context.Canceled", name, err)
		}
	}
	s.holds("dead order-1 at 0s [p] hopeless")
}

func TestNothingIsDoneIfAnIDIsNone(t *testing.T) {
	s := newSite(t)
	s.dead("dead")
	s.failed("failed")
	before := s.state()
	bad := []string{"dead", "failed", "a\nb"}
	some := []skein.DeadLetterPayloads{{ID: "dead", Payloads: data("p")}, {ID: ""}}
	o := skein.BulkOptions{}
	for name, call := range map[string]func() (skein.Result, error){
		"RunNow":         func() (skein.Result, error) { return s.RunNow(t.Context(), "orders", bad, o) },
		"Bury":           func() (skein.Result, error) { return s.Bury(t.Context(), "orders", bad, o) },
		"Delete":         func() (skein.Result, error) { return s.Delete(t.Context(), "orders", bad, o) },
		"Cancel":         func() (skein.Result, error) { return s.Cancel(t.Context(), "orders", bad, skein.CancelModeDrop, o) },
		"Revive":         func() (skein.Result, error) { return s.Revive(t.Context(), "orders", bad, o) },
		"RevivePayloads": func() (skein.Result, error) { return s.RevivePayloads(t.Context(), "orders", some, o) },
		"Purge":          func() (skein.Result, error) { return s.Purge(t.Context(), "orders", bad, o) },
		"PurgePayloads":  func() (skein.Result, error) { return s.PurgePayloads(t.Context(), "orders", some, o) },
		"Edit":           func() (skein.Result, error) { return s.Edit(t.Context(), "orders", bad, upper, o) },
		"EditPayloads":   func() (skein.Result, error) { return s.EditPayloads(t.Context(), "orders", some, upper, o) },
	} {
		if result, err := call(); !errors.Is(err, skein.ErrInvalidID) || result.Handled != 0 {
			t.Errorf("%s: %+v, %v; want ErrInvalidID", name, result, err)
		}
	}
	s.holds(before...)
}
