package main

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
)

// The error of a mistake names what the user wrote, a flag or a field of a line, and what to write
// instead. It has no Go type and no Go function.
func TestMistakesAreNamedByWhatWasWritten(t *testing.T) {
	store := memory.New(memory.Options{})
	declaredIn(t, store, "orders")
	for line, want := range map[string]string{
		"stats --timeout soon":                      `--timeout "soon"; give a duration such as 90s or 24h; see skein stats --help`,
		"job ls orders --limit many":                `--limit "many"; give a whole number`,
		"job ls orders --limit 9999999999999999999": `give a whole number`,
		"job ls orders --shard a":                   `--shard "a"; give a whole number`,
		"job ls orders --desc=maybe":                `--desc "maybe"; give true or false`,
		"job push orders 1 --score high":            `--score "high"; give a number`,
		"morgue import orders -":                    `invalid line 1: the field id is a number; give a text`,
	} {
		code, _, said := runFrom(t.Context(), `{"id":5}`, store, strings.Fields(line)...)
		for _, of := range []string{"strconv", "time:", "json:", "Go ", "letterLine"} {
			if strings.Contains(said, of) {
				t.Errorf("%s: the error has %q: %s", line, of, said)
			}
		}
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, want 2 and %q: %s", line, code, want, said)
		}
	}
}
