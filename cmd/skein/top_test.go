package main

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

func TestColumnsOfText(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "\u00e9": 1, "e\u0301": 1, "\u2705": 2, "\u231a\u26a1\u2b50": 6, "\u00a9\u2122": 2, "\U0001f600\U0001f680\U0001f7e2\U0001fae0": 8,
		"\u4e16\u754c": 4, "\uff21": 2, "\uff71": 1, "\u2026": 1, "\u2588\u2581": 2,
	} {
		if got := columnsOfText(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

// When the primary goes away, top goes on to show what it has seen, and says that it is old.
func TestTopSaysThatItsFiguresAreOld(t *testing.T) {
	pair := testservers.PostgresWithStandby(t)
	must(t, postgres.Migrate(t.Context(), pair.Primary, postgres.MigrateOptions{}))
	store := postgres.New(pair.Primary, postgres.Options{NoWakeups: true})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	seen := &top{inspector: inspect.New(store, inspect.Options{})}
	show := func() (string, error) {
		var b strings.Builder
		seen.look(t.Context())
		a := &app{process: process{stdout: &b}, output: "table"}
		err := a.showTop(seen)
		return b.String(), err
	}
	if text, err := show(); err != nil || !strings.Contains(text, "orders") || strings.Contains(text, "are old") {
		t.Errorf("%v:\n%s", err, text)
	}
	pair.KillPrimary()
	if text, err := show(); err == nil || !strings.Contains(text, "orders") || !strings.Contains(text, "these figures are old") || !strings.Contains(text, "does not answer") {
		t.Errorf("with the primary away: %v:\n%s", err, text)
	}
}
