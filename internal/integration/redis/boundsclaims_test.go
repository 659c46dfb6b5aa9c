package redis_test

import (
	"bufio"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// hugeData is the size of payloads that no call reads, and hugeJobs how many jobs have one.
const (
	hugeData = 2 << 20
	hugeJobs = 24
)

// leaseKey has the notes of large claims, and claimsKey the claims.
const (
	leaseKey  = "skein:{orders/0}:l"
	claimsKey = "skein:{orders/0}:c"
)

// oneHuge is a turn that claims one job of a large payload.
var oneHuge = ports.TurnRequest{Want: 1, Bytes: core.MaxStepBytes}

// claimHuge claims jobs of one large payload each, one a turn. It checks that readsNoClaims would
// notice a call that reads one.
func (b *bounds) claimHuge() (claims []core.Claim) {
	b.t.Helper()
	b.fill("huge", hugeJobs, 1, hugeData)
	for range hugeJobs {
		claims = append(claims, b.turn(oneHuge).Claims...)
	}
	if len(claims) != hugeJobs {
		b.t.Fatalf("%d jobs are claimed, want %d", len(claims), hugeJobs)
	}
	if len(claimReads(b.monitored(func() { b.again(oneHuge) }))) == 0 {
		b.t.Fatal("MONITOR does not show that the repeat of a turn reads its claim")
	}
	return claims
}

// again repeats the last turn.
func (b *bounds) again(r ports.TurnRequest) ports.TurnReply {
	b.t.Helper()
	b.last--
	reply := b.turn(r)
	if !reply.Repeat {
		b.t.Error("a repeated turn was carried out")
	}
	return reply
}

// settlements returns a turn that settles claims, with receipts of the given number of turns later.
func settlements(claims []core.Claim, o core.Outcome, later int64) ports.TurnRequest {
	var r ports.TurnRequest
	var policy core.RetryPolicy
	for i := range claims {
		s := policy.Settlement(&claims[i], &o, 0)
		s.Receipt.Number += later
		r.Settlements = append(r.Settlements, s)
	}
	return r
}

// A call reads no claim that it neither returns nor ends: it knows large claims by their notes.
func TestRedisCallsReadNoClaimsBesideLargeClaims(t *testing.T) {
	t.Parallel()
	b := newBounds(t)
	claims := b.claimHuge()
	n, lease := b.last, b.lease
	b.readsNoClaims("repeated acquire", func() {
		if got := b.acquire("test", 1); got.Token != lease.Token || len(got.Claims) != 0 {
			t.Errorf("a repeated acquire returns the token %d and %d claims, want %d and none",
				got.Token, len(got.Claims), lease.Token)
		}
	})
	b.last = n
	b.turn(ports.TurnRequest{Resent: true})
	b.readsNoClaims("repeated turn", func() {
		if got := b.again(oneHuge).Claims; len(got) != 0 {
			t.Errorf("a repeat of a turn that claimed nothing returns %d claims", len(got))
		}
	})
	for _, kind := range []core.OutcomeKind{core.Done, core.Untouched} {
		r := settlements(claims, core.Outcome{Kind: kind}, 100)
		b.readsNoClaims("turn that skips "+kind.String(), func() {
			if got := b.turn(r); len(got.Skipped) != hugeJobs || len(got.Deferred) != 0 {
				t.Errorf("settlements of others: %d are skipped and %d deferred, want all %d skipped",
					len(got.Skipped), len(got.Deferred), hugeJobs)
			}
		})
	}
	refs, ids := refsOf(claims, 100)
	b.readsNoClaims("turn that begins what is not there", func() {
		if got := b.turn(ports.TurnRequest{Begin: refs}).NotBegun; len(got) != hugeJobs {
			t.Errorf("%d jobs of others have not begun, want %d", len(got), hugeJobs)
		}
	})
	b.readsNoClaims("cancel", func() {
		reply, err := b.store.Cancel(t.Context(), ports.CancelRequest{Shard: b.shard, IDs: ids})
		must(t, err)
		if reply.Handled != hugeJobs {
			t.Errorf("%d jobs are cancelled, want %d", reply.Handled, hugeJobs)
		}
	})
	b.readsNoClaims("turn that is done", func() {
		r := settlements(claims, core.Outcome{Kind: core.Done}, 0)
		if got := b.turn(r); len(got.Skipped) != 0 || len(got.Deferred) != 0 || len(got.Cancellations) != 0 {
			t.Errorf("done: %d skipped, %d deferred, %d cancelled",
				len(got.Skipped), len(got.Deferred), len(got.Cancellations))
		}
	})
	b.noNotes()
}

// refsOf returns references to claims under receipts of the given number of turns later, and the
// ids of the claims.
func refsOf(claims []core.Claim, later int64) (refs []core.ClaimRef, ids []string) {
	for _, c := range claims {
		ids = append(ids, c.ID)
		refs = append(refs,
			core.ClaimRef{ID: c.ID, Receipt: core.Receipt{Token: c.Receipt.Token, Number: c.Receipt.Number + later}})
	}
	return refs, ids
}

// onClaims matches a line of MONITOR about a command on the shard's claims.
var onClaims = regexp.MustCompile(`(?i)^\S+ \[[^]]*\] "(\w+)" "` + regexp.QuoteMeta(claimsKey) + `"`)

// claimReads returns the lines of MONITOR about commands that read claims, and not only their ids
// and sizes.
func claimReads(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		m := onClaims.FindStringSubmatch(line)
		return m == nil || slices.Contains([]string{"exists", "hdel", "hexists", "hkeys", "hlen", "hset", "hstrlen"},
			strings.ToLower(m[1]))
	})
}

// readsNoClaims fails the test if the server reads a claim in a call.
func (b *bounds) readsNoClaims(name string, call func()) {
	b.t.Helper()
	for _, line := range claimReads(b.monitored(call)) {
		b.t.Errorf("%s: the server reads claims by %.200s", name, line)
	}
}

// monitored returns MONITOR's output for the commands that the server carries out in a call,
// including those of scripts.
func (b *bounds) monitored(call func()) (lines []string) {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.client.(*goredis.Client).Options().Addr)
	must(b.t, err)
	defer conn.Close()
	must(b.t, conn.SetDeadline(time.Now().Add(testservers.Patience)))
	_, err = io.WriteString(conn, "MONITOR\r\n")
	must(b.t, err)
	printed := bufio.NewReader(conn)
	ok, err := printed.ReadString('\n')
	if err != nil || ok != "+OK\r\n" {
		b.t.Fatalf("MONITOR: %q, %v", ok, err)
	}
	call()
	const end = "the call has ended"
	must(b.t, b.client.Echo(b.t.Context(), end).Err())
	for {
		line, err := printed.ReadString('\n')
		must(b.t, err)
		if strings.Contains(line, end) {
			return lines
		}
		lines = append(lines, line)
	}
}

// noNotes checks that the store has removed all notes, after all claims have ended.
func (b *bounds) noNotes() {
	b.t.Helper()
	fields, err := b.client.HKeys(b.t.Context(), leaseKey).Result()
	must(b.t, err)
	for _, field := range fields {
		if strings.HasPrefix(field, ":") {
			b.t.Errorf("the note of %q outlives its claim", field[1:])
		}
	}
}

// Large claims end in every way without leaving a note, and are handed over with their contents.
func TestRedisNotesEndWithTheirClaims(t *testing.T) {
	t.Parallel()
	b := newBounds(t)
	b.fill("one", 4, 1, 8<<10)
	b.fill("many", 4, 40, 1<<10)
	var claims []core.Claim
	for range 3 {
		claims = append(claims, b.turn(ports.TurnRequest{Want: 4, Bytes: core.MaxStepBytes}).Claims...)
	}
	if len(claims) != 8 {
		t.Fatalf("%d jobs are claimed, want 8", len(claims))
	}
	orphans := b.acquire("test", 2).Claims
	if len(orphans) != 8 {
		t.Fatalf("%d jobs are handed over, want 8", len(orphans))
	}
	put := settlements(orphans[:4], core.Outcome{Kind: core.Untouched}, 0)
	put.Want = 2 // claimed again by the turn that puts them back
	claims = b.turn(put).Claims
	b.turn(settlements(orphans[4:6], core.Outcome{Kind: core.Buried, Error: "bad"}, 0))
	b.turn(settlements(orphans[6:], core.Outcome{Kind: core.Done}, 0))
	claims = append(claims, b.turn(ports.TurnRequest{Want: 4, Bytes: core.MaxStepBytes}).Claims...)
	if len(claims) != 4 {
		t.Fatalf("%d jobs are claimed again, want 4", len(claims))
	}
	if got := b.again(ports.TurnRequest{}).Claims; len(got) != 2 {
		t.Errorf("a repeated turn returns %d claims, want 2", len(got))
	}
	if got := b.turn(settlements(claims, core.Outcome{Kind: core.Done}, 0)); len(got.Skipped) != 0 {
		t.Errorf("the settlements %v are skipped", got.Skipped)
	}
	b.noNotes()
}

// A program that keeps no notes leaves those of the lease before. They are ignored for its claims.
func TestRedisNotesOfBeforeAnOlderProgramSayNothing(t *testing.T) {
	t.Parallel()
	b := newBounds(t)
	b.fill("one", 2, 1, 8<<10)
	claims := b.turn(ports.TurnRequest{Want: 2}).Claims
	held, err := b.client.HGet(t.Context(), leaseKey, "noted").Result()
	must(t, err)
	id, receipt := claims[0].ID, claims[0].Receipt
	notes, err := b.client.HGetAll(t.Context(), leaseKey).Result()
	must(t, err)
	b.acquire("test", 2)
	b.turn(settlements(claims[:1], core.Outcome{Kind: core.Untouched}, 0))
	again := b.turn(ports.TurnRequest{Want: 1}).Claims
	if len(again) != 1 || again[0].ID != id || again[0].Receipt == receipt {
		t.Fatalf("claimed %v, want %s anew", again, id)
	}
	// As if that program had neither changed the note nor recorded that it keeps any.
	must(t, b.client.HSet(t.Context(), leaseKey, "noted", held, ":"+id, notes[":"+id]).Err())
	_, err = b.store.Cancel(t.Context(), ports.CancelRequest{Shard: b.shard, IDs: []string{id}})
	must(t, err)
	reply := b.acquire("test", 3)
	if len(reply.Cancellations) != 1 || reply.Cancellations[0].Receipt != again[0].Receipt {
		t.Errorf("cancelled are %v, want the receipt %v", reply.Cancellations, again[0].Receipt)
	}
	if len(reply.Claims) != 2 || reply.Claims[0].Receipt != again[0].Receipt {
		t.Fatalf("handed over are %v", reply.Claims)
	}
	if got := b.turn(settlements(reply.Claims, core.Outcome{Kind: core.Done}, 0)); len(got.Skipped) != 0 {
		t.Errorf("the settlements %v are skipped", got.Skipped)
	}
	b.noNotes()
}

// A large claim that runs alone lets others run once it has ended, in whichever way.
func TestRedisLargeClaimsThatRunAloneEnd(t *testing.T) {
	t.Parallel()
	for _, o := range []core.Outcome{{Kind: core.Done}, {Kind: core.Buried, Error: "bad"}} {
		t.Run(o.Kind.String(), func(t *testing.T) {
			b := newBounds(t)
			b.fill("alone", 1, 1, 8<<10)
			claims := b.turn(ports.TurnRequest{Want: 1}).Claims
			crashed := core.Settlement{
				ID: claims[0].ID, Receipt: claims[0].Receipt, Rest: core.Requeue, PutBack: core.PutBack{Recoveries: 2},
			}
			b.turn(ports.TurnRequest{Settlements: []core.Settlement{crashed}})
			claims = b.turn(ports.TurnRequest{Want: 1}).Claims
			b.fill("other", 1, 1, 10)
			if got := b.turn(ports.TurnRequest{Want: 1}).Claims; len(claims) != 1 || len(got) != 0 {
				t.Fatalf("beside %v the jobs %v are claimed, want one that runs alone", claims, got)
			}
			b.turn(settlements(claims, o, 0))
			if got := b.turn(ports.TurnRequest{Want: 1}).Claims; len(got) != 1 {
				t.Error("once it has ended, no other job is claimed")
			}
			b.noNotes()
		})
	}
}

// A large claim that can't be read is set aside with its note.
func TestRedisNotesGoWithDamagedClaims(t *testing.T) {
	t.Parallel()
	b := newBounds(t)
	b.fill("one", 1, 1, 8<<10)
	claims := b.turn(ports.TurnRequest{Want: 1}).Claims
	stored, err := b.client.HGet(t.Context(), claimsKey, claims[0].ID).Result()
	must(t, err)
	must(t,
		b.client.HSet(t.Context(), claimsKey, claims[0].ID, stored[:24]+strings.Repeat("\xff", len(stored)-24)).Err())
	if got := b.acquire("test", 2).Claims; len(got) != 0 {
		t.Errorf("%v are handed over", got)
	}
	stats, err := b.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	must(t, err)
	if stats[0].Quarantined != 1 || stats[0].Claimed != 0 {
		t.Errorf("%d records are set aside and %d jobs claimed, want 1 and 0", stats[0].Quarantined, stats[0].Claimed)
	}
	b.noNotes()
}

// A note of another length is of another claim: the stored claim counts.
func TestRedisNotesOfAnotherLengthSayNothing(t *testing.T) {
	t.Parallel()
	b := newBounds(t)
	b.fill("one", 1, 1, 8<<10)
	b.fill("two", 1, 1, 9<<10)
	first, second := b.turn(ports.TurnRequest{Want: 1}).Claims, b.turn(ports.TurnRequest{Want: 1}).Claims
	stored, err := b.client.HGet(t.Context(), claimsKey, second[0].ID).Result()
	must(t, err)
	must(t, b.client.HSet(t.Context(), claimsKey, first[0].ID, stored).Err())
	first[0].Receipt = second[0].Receipt
	r := settlements(first, core.Outcome{Kind: core.Done}, 0)
	r.Resent = true // not the usual turn, which reads claims that are small together
	if got := b.turn(r); len(got.Skipped) != 0 {
		t.Error("the claim that is stored does not end under its own receipt")
	}
}
