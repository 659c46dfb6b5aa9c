package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// actions does each thing that may change something, each once or twice.
func actions(ctx context.Context, i *inspect.Inspector) map[string]func() error {
	bulk := func(_ inspect.Result, err error) error { return err }
	all := inspect.BulkOptions{Filter: "all of them"}
	match := func(inspect.DeadLetter) bool { return true }
	one := []string{"a"}
	first := []inspect.FirstPayload{{ID: "a", Data: []byte("p1")}}
	named := []inspect.DeadLetterPayloads{{ID: "a", Payloads: [][]byte{[]byte("p1")}}}

	return map[string]func() error{
		"pause":                func() error { return i.Pause(ctx, "orders") },
		"stop rate for 1h0m0s": func() error { return i.StopRate(ctx, "orders", "", time.Hour) },
		"resume rate":          func() error { return i.ResumeRate(ctx, "orders", "") },
		"resume":               func() error { return i.Resume(ctx, "orders") },
		"set merge rule newest": func() error {
			return i.SetMerge(ctx, "orders", core.MergeRule{Stays: core.Highest})
		},
		"configure": func() error {
			unset := []core.SettingChange{{Name: core.SettingMaxLanes, Unset: true}}
			_, err := i.Configure(ctx, "orders", unset, inspect.ConfigureOptions{})
			return err
		},
		"forget":    func() error { return i.Forget(ctx, "orders") },
		"recount":   func() error { _, err := i.Recount(ctx, "orders", nil); return err },
		"drain":     func() error { return i.Drain(ctx, "no-node", true) },
		"end drain": func() error { return i.Drain(ctx, "no-node", false) },
		"track":     func() error { _, err := i.Track(ctx, "orders", "a"); return err },
		"untrack":   func() error { _, err := i.Untrack(ctx, "orders", "a"); return err },
		"run now":   func() error { return bulk(i.RunNow(ctx, "orders", inspect.JobIDs(one...))) },
		"run all now": func() error {
			return bulk(i.RunNow(ctx, "orders", inspect.AllJobs(nil, inspect.BulkOptions{})))
		},
		"release": func() error { return bulk(i.Release(ctx, "orders", inspect.JobIDs(one...))) },
		"release all": func() error {
			return bulk(i.Release(ctx, "orders", inspect.AllJobs(nil, inspect.BulkOptions{})))
		},
		"bury first":   func() error { return bulk(i.Bury(ctx, "orders", inspect.FirstPayloads(first...))) },
		"delete first": func() error { return bulk(i.Delete(ctx, "orders", inspect.FirstPayloads(first...))) },
		"bury":         func() error { return bulk(i.Bury(ctx, "orders", inspect.JobIDs(one...))) },
		"bury failed": func() error {
			return bulk(i.Bury(ctx, "orders", inspect.FailedJobs(nil, inspect.BulkOptions{})))
		},
		"delete": func() error { return bulk(i.Delete(ctx, "orders", inspect.JobIDs(one...))) },
		"delete failed": func() error {
			return bulk(i.Delete(ctx, "orders", inspect.FailedJobs(nil, inspect.BulkOptions{})))
		},
		"cancel and drop": func() error { return bulk(i.Cancel(ctx, "orders", one, inspect.CancelModeDrop)) },
		"revive":          func() error { return bulk(i.Revive(ctx, "orders", inspect.DeadIDs(one...))) },
		"revive payloads": func() error { return bulk(i.Revive(ctx, "orders", inspect.DeadPayloads(named...))) },
		"revive all":      func() error { return bulk(i.Revive(ctx, "orders", inspect.AllDead(match, all))) },
		"purge":           func() error { return bulk(i.Purge(ctx, "orders", inspect.DeadIDs(one...))) },
		"purge payloads":  func() error { return bulk(i.Purge(ctx, "orders", inspect.DeadPayloads(named...))) },
		"purge all": func() error {
			return bulk(i.Purge(ctx, "orders", inspect.AllDead(nil, inspect.BulkOptions{})))
		},
		"discard":       func() error { _, err := i.Discard(ctx, core.Shard{Queue: "orders"}, "key"); return err },
		"import":        func() error { return bulk(i.Import(ctx, "orders", sequence(nil, nil), nil)) },
		"edit":          func() error { return bulk(i.Edit(ctx, "orders", inspect.DeadIDs(one...), upper)) },
		"edit job":      func() error { return bulk(i.EditJob(ctx, "orders", "x", nil, upper)) },
		"edit payloads": func() error { return bulk(i.Edit(ctx, "orders", inspect.DeadPayloads(named...), upper)) },
		"edit all": func() error {
			return bulk(i.Edit(ctx, "orders", inspect.AllDead(nil, inspect.BulkOptions{}), upper))
		},
	}
}

// Each action makes one record in the log and one in the store's audit, with its actor and reason,
// whether or not it succeeded.
func TestEachActionIsInTheLogAndTheAudit(t *testing.T) {
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann", From: "10.0.0.9", Reason: "why not"})
	for verb := range actions(ctx, nil) {
		t.Run(verb, func(t *testing.T) {
			s := newFixture(t)
			var log bytes.Buffer
			i := inspect.New(s.store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			err := actions(ctx, i)[verb]()

			for a, listed := range i.Actions(t.Context(), inspect.ActionsOptions{}) {
				want := inspect.Actor{Name: "ann", From: "10.0.0.9", Reason: "why not"}
				if listed != nil || a.Verb != verb || a.Actor != want || !a.Ended || (a.Error != "") != (err != nil) ||
					len(a.IDs) != a.Named {
					t.Errorf("the audit has %+v, %v, after error %v", a, listed, err)
				}
			}

			if n := len(audited(t, i, "")); n != 1 {
				t.Errorf("the audit has %d actions, want 1", n)
			}

			text := log.String()
			if strings.Count(text, "\n") != 1 {
				t.Fatalf("the log has %q, want one record", text)
			}

			says := []string{
				`level=INFO msg="operator acted" lib=skein actor=ann from=10.0.0.9 reason="why not" action=`,
				"handled=0",
				"took=",
			}
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

	if _, err := i.Revive(t.Context(), "orders", inspect.AllDead(nil, inspect.BulkOptions{DryRun: true})); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 || audited(t, i, "") != nil {
		t.Errorf("of a DryRun the log has %q, and the audit %q", log.String(), audited(t, i, ""))
	}

	if _, err := i.Revive(t.Context(), "orders", inspect.DeadIDs("a", "b")); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text,
		`actor="" from="" reason="" action=revive queue=orders named=2 ids="[a b]" `+
			`prefix="" group="" filter="" handled=2`) {
		t.Errorf("the log has %q", text)
	}
}

// audited lists the verbs of the audit, the newest first.
func audited(t *testing.T, i *inspect.Inspector, queue string) []string {
	t.Helper()
	var verbs []string
	for a, err := range i.Actions(t.Context(), inspect.ActionsOptions{Queue: queue}) {
		if err != nil {
			t.Fatal(err)
		}
		verbs = append(verbs, a.Verb)
	}
	return verbs
}

// While an action runs it is in the audit as one that has not ended. So the action of a killed
// process stays there.
func TestAnActionIsInTheAuditBeforeItHasEnded(t *testing.T) {
	s := newFixture(t)
	s.dead("a")

	during := 0
	match := func(inspect.DeadLetter) bool {
		for a, err := range s.Actions(t.Context(), inspect.ActionsOptions{}) {
			during++
			if err != nil || a.Ended || a.Verb != "purge all" || a.Filter != "f" || a.Took != 0 {
				t.Errorf("while it goes on the audit has %+v, %v", a, err)
			}
		}
		return true
	}

	if _, err := s.Purge(t.Context(), "orders", inspect.AllDead(match, inspect.BulkOptions{Filter: "f"})); err != nil ||
		during != 1 {
		t.Errorf("PurgeAll gave %v, and the audit had %d actions while it went on; want 1", err, during)
	}

	for a := range s.Actions(t.Context(), inspect.ActionsOptions{}) {
		if !a.Ended || a.Handled != 1 || a.Error != "" || !a.At.Equal(s.clock.Now()) {
			t.Errorf("the audit has %+v, want its end, at %v", a, s.clock.Now())
		}
	}
}

// A text that is too long for the audit is truncated. The action runs, and is in the audit.
func TestTheAuditCutsWhatIsTooLong(t *testing.T) {
	s := newFixture(t)
	var ids []string
	for i := range 30 {
		ids = append(ids, strings.Repeat("é", 200)+string(rune('a'+i)))
	}

	long := strings.Repeat("é", 600) + "\x00\xff"
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: long, From: long, Reason: long})
	if _, err := s.Delete(ctx, "orders", inspect.JobIDs(ids...)); err != nil {
		t.Fatal(err)
	}

	n := 0
	for a, err := range s.Actions(t.Context(), inspect.ActionsOptions{}) {
		n++
		if err != nil || a.Named != 30 || len(a.IDs) != ports.MaxActionIDs ||
			a.Actor.Reason != strings.Repeat("é", 256) {
			t.Errorf("the audit has %+v, %v", a, err)
		}
	}

	if n != 1 {
		t.Errorf("the audit has %d actions, want 1", n)
	}
}

// The list can be limited to one queue. It has the actions of all pages.
func TestActionsOfAQueue(t *testing.T) {
	s := newFixture(t)
	s.declare("mail", 1)

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	must(s.Pause(t.Context(), "mail"))
	for range 2*ports.MaxActions + 10 {
		must(s.Pause(t.Context(), "orders"))
	}
	must(s.Resume(t.Context(), "mail"))

	if got, want := strings.Join(audited(t, s.Inspector, "mail"), " "), "resume pause"; got != want {
		t.Errorf("the actions on mail are %q, want %q", got, want)
	}
	if got, want := len(audited(t, s.Inspector, "")), 2*ports.MaxActions+12; got != want {
		t.Errorf("%d actions are listed, want %d", got, want)
	}

	for range s.Actions(t.Context(), inspect.ActionsOptions{}) {
		break
	}
}

// The actions on an id are those that named it, in all queues or in one.
func TestActionsOnAnID(t *testing.T) {
	s := newFixture(t)
	s.declare("mail", 1)
	s.pushAll("a", "b")
	bad := "bad\xff" // the audit has ids as UTF-8
	for _, act := range []func() (inspect.Result, error){
		func() (inspect.Result, error) { return s.RunNow(t.Context(), "orders", inspect.JobIDs("a", "b")) },
		func() (inspect.Result, error) { return s.Bury(t.Context(), "orders", inspect.JobIDs("a")) },
		func() (inspect.Result, error) { return s.Delete(t.Context(), "mail", inspect.JobIDs("a")) },
		func() (inspect.Result, error) { return s.Purge(t.Context(), "orders", inspect.DeadIDs("b")) },
		func() (inspect.Result, error) {
			return s.Release(t.Context(), "orders", inspect.AllJobs(nil, inspect.BulkOptions{}))
		},
	} {
		if _, err := act(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Purge(t.Context(), "orders", inspect.DeadIDs(bad)); err == nil {
		t.Fatal("an id that is not UTF-8 is no id")
	}

	for _, tt := range []struct{ queue, id, want string }{
		{"", "a", "delete bury run now"},
		{"orders", "a", "bury run now"},
		{"mail", "a", "delete"},
		{"", "b", "purge run now"},
		{"", bad, "purge"},
		{"", "none", ""},
	} {
		var got []string
		for a, err := range s.Actions(t.Context(), inspect.ActionsOptions{Queue: tt.queue, ID: tt.id}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.Verb)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("on %q of %q: %q, want %q", tt.id, tt.queue, text, tt.want)
		}
	}
}

// An action runs even if the store can't store its audit record, and the failure is logged. An
// action whose context has ended is in the audit too.
func TestAnActionIsDoneWithoutItsAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		var log bytes.Buffer
		hangs := true

		store := storekit.Intercept(s.store, func(
			ctx context.Context,
			call storekit.Call,
			next func(context.Context) error,
		) error {
			if call.Method == "Audit" && hangs {
				<-ctx.Done()
				return ctx.Err()
			}
			return next(ctx)
		})

		i := inspect.New(store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err := i.Pause(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); !strings.Contains(text, "level=WARN") ||
			!strings.Contains(text, "the store's audit lacks an action") {
			t.Errorf("the log has %q", text)
		}
		if queues, err := i.Queues(t.Context()); err != nil || !queues[0].Paused {
			t.Errorf("the queues are %+v, %v; want a pause", queues, err)
		}

		hangs = false
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := i.Resume(ended, "orders"); err == nil {
			t.Error("a call with an ended context gave no error")
		}

		for a, err := range i.Actions(t.Context(), inspect.ActionsOptions{}) {
			if err != nil || a.Verb != "resume" || !a.Ended || a.Error == "" {
				t.Errorf("the audit has %+v, %v; want the resume that failed", a, err)
			}
		}
	})
}

// The calls of an action that continues from Checkpoints are one action in the audit.
func TestAContinuedActionIsOneInTheAudit(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("a", 30)...)
	s.advance(time.Second)
	o := inspect.BulkOptions{Limit: 10}

	for calls := 1; ; calls++ {
		result, err := s.Revive(t.Context(), "orders", inspect.AllDead(nil, o))
		if err != nil {
			t.Fatal(err)
		}

		for a, err := range s.Actions(t.Context(), inspect.ActionsOptions{}) {
			if err != nil || !a.Ended || a.Handled != min(30, 10*calls) {
				t.Errorf("after %d calls the audit has %+v, %v", calls, a, err)
			}
		}

		if o.Continue = result.Checkpoint; o.Continue == "" {
			break
		}
	}

	if got := len(audited(t, s.Inspector, "")); got != 1 {
		t.Errorf("the audit has %d actions, want 1", got)
	}
}

// An action with little time runs even if the audit does not answer.
func TestAnActionWithADeadlineIsDoneWithoutItsAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)

		store := storekit.Intercept(s.store, func(
			ctx context.Context,
			call storekit.Call,
			next func(context.Context) error,
		) error {
			if call.Method == "Audit" {
				<-ctx.Done()
				return ctx.Err()
			}
			return next(ctx)
		})

		i := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()

		began := time.Now()
		if err := i.Pause(ctx, "orders"); err != nil {
			t.Error(err)
		}

		if took := time.Since(began); took > time.Second { // in virtual time
			t.Errorf("it took %v of the second that it has", took)
		}
	})
}

// A record that can't be read hides no other.
func TestActionsBesideOneThatCannotBeRead(t *testing.T) {
	s := newFixture(t)
	for range ports.MaxActions + 10 {
		if err := s.Pause(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
	}

	store := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		err := next(ctx)
		if page, ok := call.Reply.(*[]ports.Action); ok && len(*page) == ports.MaxActions {
			*page = append((*page)[:5:5], (*page)[6:]...)
		}
		return err
	})

	if got, want := len(audited(t, inspect.New(store, inspect.Options{}), "")), ports.MaxActions+9; got != want {
		t.Errorf("%d actions are listed, want %d", got, want)
	}
}

// If an actor continues the action of another one, the audit keeps both. If an actor continues an
// action of his own without a reason, the first reason stays.
func TestWhoGoesOnWithAnAction(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("a", 30)...)
	s.advance(time.Second)
	o := inspect.BulkOptions{Limit: 10}

	for _, who := range []inspect.Actor{{Name: "ann", Reason: "the bank is back"}, {Name: "ann"}, {Name: "bob"}} {
		result, err := s.Revive(inspect.WithActor(t.Context(), who), "orders", inspect.AllDead(nil, o))
		if err != nil {
			t.Fatal(err)
		}
		o.Continue = result.Checkpoint
	}

	var got []string
	for a := range s.Actions(t.Context(), inspect.ActionsOptions{}) {
		got = append(got, fmt.Sprintf("%s %q %d", a.Actor.Name, a.Actor.Reason, a.Handled))
	}

	if want := []string{`bob "" 30`, `ann "the bank is back" 20`}; !slices.Equal(got, want) {
		t.Errorf("the audit has %q, want %q", got, want)
	}
}

// An action with the longest id, prefix, name and reason, all of characters that JSON writes in
// six, continues from its Checkpoint.
func TestTheLongestActionGoesOn(t *testing.T) {
	s := newFixture(t)
	prefix := strings.Repeat("<", core.MaxIDBytes-1)
	s.dead(prefix+"a", prefix+"b", prefix+"c")
	s.advance(time.Second)

	long := strings.Repeat("<", ports.MaxActionText)
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: long, Reason: long})
	o := inspect.BulkOptions{Limit: 1, Prefix: prefix}
	handled := 0

	for calls := 0; calls < 3 && (calls == 0 || o.Continue != ""); calls++ {
		result, err := s.Revive(ctx, "orders", inspect.AllDead(nil, o))
		if err != nil {
			t.Fatal(err)
		}
		handled, o.Continue = result.Handled, result.Checkpoint
	}

	if handled != 3 || len(audited(t, s.Inspector, "")) != 1 {
		t.Errorf("%d were handled, in %d actions of the audit; want 3 in one",
			handled, len(audited(t, s.Inspector, "")))
	}
}
