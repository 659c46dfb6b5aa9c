package inspect_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// actions does each thing that may change something, each once or twice.
func actions(ctx context.Context, i *inspect.Inspector) map[string]func() error {
	bulk := func(_ inspect.Result, err error) error { return err }
	all := inspect.BulkOptions{Filter: "all of them"}
	match := func(inspect.DeadLetter) bool { return true }
	one := []string{"a"}
	named := []inspect.DeadLetterPayloads{{ID: "a", Payloads: [][]byte{[]byte("p1")}}}
	return map[string]func() error{
		"pause":           func() error { return i.Pause(ctx, "orders") },
		"resume":          func() error { return i.Resume(ctx, "orders") },
		"forget":          func() error { return i.Forget(ctx, "orders") },
		"recount":         func() error { _, err := i.Recount(ctx, "orders"); return err },
		"drain":           func() error { return i.Drain(ctx, "no-node", true) },
		"end drain":       func() error { return i.Drain(ctx, "no-node", false) },
		"run now":         func() error { return bulk(i.RunNow(ctx, "orders", one, inspect.BulkOptions{})) },
		"run all now":     func() error { return bulk(i.RunAllNow(ctx, "orders", nil, inspect.BulkOptions{})) },
		"bury":            func() error { return bulk(i.Bury(ctx, "orders", one, inspect.BulkOptions{})) },
		"bury failed":     func() error { return bulk(i.BuryFailed(ctx, "orders", nil, inspect.BulkOptions{})) },
		"delete":          func() error { return bulk(i.Delete(ctx, "orders", one, inspect.BulkOptions{})) },
		"delete failed":   func() error { return bulk(i.DeleteFailed(ctx, "orders", nil, inspect.BulkOptions{})) },
		"cancel and drop": func() error { return bulk(i.Cancel(ctx, "orders", one, inspect.CancelModeDrop, inspect.BulkOptions{})) },
		"revive":          func() error { return bulk(i.Revive(ctx, "orders", one, inspect.BulkOptions{})) },
		"revive payloads": func() error { return bulk(i.RevivePayloads(ctx, "orders", named, inspect.BulkOptions{})) },
		"revive all":      func() error { return bulk(i.ReviveAll(ctx, "orders", match, all)) },
		"purge":           func() error { return bulk(i.Purge(ctx, "orders", one, inspect.BulkOptions{})) },
		"purge payloads":  func() error { return bulk(i.PurgePayloads(ctx, "orders", named, inspect.BulkOptions{})) },
		"purge all":       func() error { return bulk(i.PurgeAll(ctx, "orders", nil, inspect.BulkOptions{})) },
		"discard":         func() error { _, err := i.Discard(ctx, core.Shard{Queue: "orders"}, "key"); return err },
		"import":          func() error { return bulk(i.Import(ctx, "orders", sequence(nil, nil), inspect.BulkOptions{})) },
		"edit":            func() error { return bulk(i.Edit(ctx, "orders", one, upper, inspect.BulkOptions{})) },
		"edit payloads":   func() error { return bulk(i.EditPayloads(ctx, "orders", named, upper, inspect.BulkOptions{})) },
		"edit all":        func() error { return bulk(i.EditAll(ctx, "orders", nil, upper, inspect.BulkOptions{})) },
	}
}

// Each action is one record that says who did what, whether or not it was done.
func TestEachActionIsInTheLog(t *testing.T) {
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann", From: "10.0.0.9"})
	for verb := range actions(ctx, nil) {
		t.Run(verb, func(t *testing.T) {
			s := newFixture(t)
			var log bytes.Buffer
			i := inspect.New(s.store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			err := actions(ctx, i)[verb]()
			text := log.String()
			if strings.Count(text, "\n") != 1 {
				t.Fatalf("the log has %q, want one record", text)
			}
			says := []string{`level=INFO msg="operator acted" lib=skein actor=ann from=10.0.0.9 action=`, "handled=0", "took="}
			if strings.Contains(verb, " ") {
				verb = `"` + verb + `"`
			}
			says = append(says, "action="+verb)
			if verb == `"revive all"` {
				says = append(says, `filter="all of them"`)
			}
			for _, say := range says {
				if !strings.Contains(text, say) {
					t.Errorf("the log has %q, want %q in it", text, say)
				}
			}
			if failed := strings.Contains(text, " error="); failed != (err != nil) {
				t.Errorf("the log has %q, the error is %v", text, err)
			}
		})
	}
}

func TestTheLogSaysHowManyWereHandledAndNothingOfADryRun(t *testing.T) {
	s := newFixture(t)
	s.dead("a", "b", "c")
	var log bytes.Buffer
	i := inspect.New(s.store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := i.ReviveAll(t.Context(), "orders", nil, inspect.BulkOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("of a DryRun the log has %q", log.String())
	}
	if _, err := i.Revive(t.Context(), "orders", []string{"a", "b"}, inspect.BulkOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, `actor="" from="" action=revive queue=orders ids=2 prefix="" group="" filter="" handled=2`) {
		t.Errorf("the log has %q", text)
	}
}
