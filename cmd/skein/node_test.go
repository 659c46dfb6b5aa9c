package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

// The servers that run are listed by name. Below them are those that are gone, with the time when
// each of them went, the last one first: the one that an operator looks for is not among older
// ones.
func TestServersAreListedByTheTimeTheyWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := memory.New(memory.Options{}), time.Now()
		for name, ttl := range map[string]time.Duration{
			"a": 5 * time.Minute,
			"b": 24 * time.Hour,
			"c": 20 * time.Minute,
			"d": 24 * time.Hour,
			"e": 10 * time.Minute,
		} {
			_, err := store.Announce(t.Context(), ports.AnnounceRequest{
				Node: ports.Node{Owner: "owner-" + name, Name: name},
				TTL:  ttl,
			})
			must(t, err)
		}
		time.Sleep(30 * time.Minute)

		at := func(ttl time.Duration) string { return began.Add(ttl).UTC().Format("2006-01-02T15:04:05.000Z") }
		want := []string{
			"b alive -", "d alive -", "c gone " + at(20*time.Minute),
			"e gone " + at(10*time.Minute), "a gone " + at(5*time.Minute),
		}

		code, out, said := runOn(t, store, "node", "ls")
		var got []string
		for line := range strings.Lines(out) {
			if cells := strings.Fields(line); cells[0] != "NAME" {
				got = append(got, strings.Join(cells[:3], " "))
			}
		}
		if code != 0 || !slices.Equal(got, want) {
			t.Errorf("exit code %d: %q, want %q: %s%s", code, got, want, out, said)
		}
	})
}
