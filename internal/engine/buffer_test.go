package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

func claimsOf(ids ...string) []core.Claim {
	var claims []core.Claim
	for _, id := range ids {
		claims = append(claims, core.Claim{Job: core.Job{ID: id}, Receipt: core.Receipt{Number: 1}})
	}
	return claims
}

func idsOf(claims []core.Claim) []string {
	ids := []string{}
	for _, c := range claims {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestTheBufferReturnsJobsInTheOrderOfTheirClaims(t *testing.T) {
	var b buffer
	start := time.Now()
	b.push(claimsOf("a", "b", "c"), start)
	b.push(nil, start)
	b.push(claimsOf("d", "e"), start.Add(time.Second))
	if got := idsOf(b.take(2)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("take(2) = %q", got)
	}
	if since, ok := b.oldest(); !ok || !since.Equal(start) {
		t.Errorf("oldest = %v, %v", since, ok)
	}
	if got := idsOf(b.take(2)); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("take(2) over two claims = %q", got)
	}
	if since, ok := b.oldest(); !ok || !since.Equal(start.Add(time.Second)) {
		t.Errorf("oldest = %v, %v", since, ok)
	}
	if got := idsOf(b.take(9)); !slices.Equal(got, []string{"e"}) {
		t.Errorf("take(9) = %q", got)
	}
	if _, ok := b.oldest(); ok || b.head() != nil || b.take(1) != nil {
		t.Error("the buffer is not empty")
	}
}

func TestTheBufferNeverWritesToWhatTheStoreReturned(t *testing.T) {
	var b buffer
	given := claimsOf("a", "b", "c", "d")
	want := slices.Clone(given)
	b.push(given, time.Now())
	b.remove("b", core.Receipt{Number: 1})
	batch := b.take(1)
	_ = append(batch, claimsOf("other")...)
	b.remove("d", core.Receipt{Number: 1})
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("the store's slice changed (-want +got):\n%s", diff)
	}
	if got := idsOf(b.take(9)); !slices.Equal(got, []string{"c"}) {
		t.Errorf("left: %q", got)
	}
}

func TestTheBufferRemovesOnlyTheClaimOfThatReceipt(t *testing.T) {
	var b buffer
	b.push(claimsOf("a"), time.Now())
	if _, ok := b.remove("a", core.Receipt{Number: 2}); ok || b.jobs != 1 {
		t.Error("a claim of another receipt was removed")
	}
	if c, ok := b.remove("a", core.Receipt{Number: 1}); !ok || c.ID != "a" || b.jobs != 0 {
		t.Errorf("remove = %v, %v, %d left", c, ok, b.jobs)
	}
}

// The buffer is a queue: after any operation, it holds the same as a plain list.
func TestTheBufferIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b buffer
		want := []string{}
		next := 0

		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				var ids []string
				for range rapid.IntRange(0, 5).Draw(t, "n") {
					ids = append(ids, fmt.Sprint(next))
					next++
				}
				b.push(claimsOf(ids...), time.Now())
				want = append(want, ids...)
			},
			"take": func(t *rapid.T) {
				n := rapid.IntRange(0, 8).Draw(t, "n")
				got := idsOf(b.take(n))
				n = min(n, len(want))
				if !slices.Equal(got, want[:n]) {
					t.Fatalf("take = %q, want %q", got, want[:n])
				}
				want = want[n:]
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				at := rapid.IntRange(0, len(want)-1).Draw(t, "at")
				if _, ok := b.remove(want[at], core.Receipt{Number: 1}); !ok {
					t.Fatalf("remove(%q) found nothing", want[at])
				}
				want = slices.Delete(slices.Clone(want), at, at+1)
			},
			"": func(t *rapid.T) {
				if b.jobs != len(want) {
					t.Fatalf("%d jobs, want %d", b.jobs, len(want))
				}
				if head := b.head(); len(want) > 0 && head.ID != want[0] {
					t.Fatalf("head %q, want %q", head.ID, want[0])
				}
			},
		})
	})
}
