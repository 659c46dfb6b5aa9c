package redis_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

const (
	// largeData is the size of payloads that follow small ones.
	largeData = 256 << 10
	// mostLua is the most that a call may leave in the memory of scripts. They have read 8 MiB and
	// packed it again. It is generous: scripts that estimated sizes by the small payloads left 100
	// MiB and more.
	mostLua = 48 << 20
)

// A script's reads are bounded in bytes even if small payloads come before large ones.
func TestRedisReadsAreBoundedWhateverTheSizes(t *testing.T) {
	tier.Long(t, "measures")
	t.Run("a large set", func(t *testing.T) {
		b := newBounds(t)
		b.mixed("set", 1, 8, 400)
		b.reads("turn that claims", func() { b.turn(ports.TurnRequest{Want: 1, Bytes: core.MaxStepBytes}) })
		b.mixed("other", 1, 8, 400)
		b.leaves("find", func() {
			_, err := b.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "other-000000", Payloads: 1000})
			must(t, err)
		})
	})
	t.Run("many jobs", func(t *testing.T) {
		b := newBounds(t)
		var ids []string
		ids = append(ids, b.fill("a", 24, 1, 100)...)
		ids = append(ids, b.fill("b", 226, 1, largeData)...)
		b.reads("step", func() {
			_, err := b.store.Expedite(t.Context(), ports.JobStep{Shard: b.shard, IDs: ids})
			must(t, err)
		})
		b.reads("usual turn", func() { b.turn(ports.TurnRequest{Want: 256, Bytes: core.MaxStepBytes}) })
		b.fill("b", 1, 2, 10) // so that the turn is not the usual one
		b.reads("turn", func() { b.turn(ports.TurnRequest{Want: 256, Bytes: core.MaxStepBytes}) })
	})
}

// A push onto large jobs takes several scripts.
func TestRedisPushesAreBoundedByWhatTheyMeet(t *testing.T) {
	tier.Long(t, "measures")
	b := newBounds(t)
	var entries []core.Entry
	for _, id := range b.fill("large", 240, 1, largeData) {
		entries = append(entries, one(id, 1))
	}
	must(t, b.client.ConfigSet(t.Context(), "slowlog-log-slower-than", "1000").Err())
	b.leaves("push onto large jobs", func() {
		_, err := b.store.Push(t.Context(),
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
		must(t, err)
	})
	b.leaves("push of large entries", func() { b.fill("more", 30, 1, 2<<20) })
	logged, err := b.client.SlowLogGet(t.Context(), 1000).Result()
	must(t, err)
	scripts := 0
	for _, l := range logged {
		if strings.HasPrefix(strings.ToLower(l.Args[0]), "eval") {
			scripts++
		}
	}
	if want := (240*largeData + 30<<21) / (core.MaxStepBytes + 2<<20); scripts < want {
		t.Errorf("%d scripts, want %d or more, so that each is short", scripts, want)
	}
}

// The reads of settlements are bounded, also for claims that leave nothing, or little.
func TestRedisSettlementsAreBoundedByWhatTheyRead(t *testing.T) {
	tier.Long(t, "measures")
	b := newBounds(t)
	b.fill("a", 24, 1, 100)
	b.fill("b", 40, 16, largeData)
	var claims []core.Claim
	for len(claims) < 64 {
		claims = append(claims, b.turn(ports.TurnRequest{Want: 256, Bytes: core.MaxStepBytes}).Claims...)
	}
	settle := func(name string, claims []core.Claim, how func(core.Claim) core.Settlement) {
		for turns := 0; len(claims) > 0; turns++ {
			var r ports.TurnRequest
			for _, c := range claims {
				r.Settlements = append(r.Settlements, how(c))
			}
			var left []core.Claim
			b.reads(name, func() {
				for _, i := range b.turn(r).Deferred {
					left = append(left, claims[i])
				}
			})
			if turns > 64 {
				t.Fatalf("%s does not end", name)
			}
			claims = left
		}
	}
	settle("turn that puts one payload of each back", claims[:44], func(c core.Claim) core.Settlement {
		return core.Settlement{
			ID:      c.ID,
			Receipt: c.Receipt,
			PutBack: core.PutBack{SameTime: true},
			Except:  []core.PayloadDisposition{{Position: 0, Disposition: core.Requeue}},
		}
	})
	rest := append([]core.Claim{}, claims[44:]...)
	settle("turn that is done", rest, func(c core.Claim) core.Settlement {
		return core.Settlement{ID: c.ID, Receipt: c.Receipt, Processed: true}
	})
}

// mixed pushes jobs of some small payloads and then large ones.
func (b *bounds) mixed(name string, jobs, small, large int) {
	b.t.Helper()
	filler := bytes.Repeat([]byte("x"), largeData)
	for i := range jobs {
		id := fmt.Sprintf("%s-%06d", name, i)
		for from := 0; from < small+large; from += 32 {
			var entries []core.Entry
			for k := from; k < min(from+32, small+large); k++ {
				data := strconv.AppendInt(nil, int64(k), 10)
				if k >= small {
					data = append(data, filler...)
				}
				entries = append(entries, core.Entry{ID: id, Payload: core.Payload{Data: data, Score: float64(k)}})
			}
			_, err := b.store.Push(b.t.Context(),
				ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
			must(b.t, err)
		}
	}
}

// reads makes a call of one script. It compares the server's processor time with 400 ms, in which a
// loaded machine reads as much, and the memory that the call leaves with mostLua.
func (b *bounds) reads(name string, do func()) {
	b.t.Helper()
	b.leaves(name, func() { b.within(name, 400*time.Millisecond, do) })
}

// leaves makes a call and compares the memory of scripts that it leaves with mostLua.
func (b *bounds) leaves(name string, do func()) {
	b.t.Helper()
	must(b.t, b.client.ScriptFlush(b.t.Context()).Err())
	do()
	info, err := b.client.Info(b.t.Context(), "memory").Result()
	must(b.t, err)
	for line := range strings.Lines(info) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory_vm_eval:")
		if !ok {
			continue
		}
		used, err := strconv.Atoi(text)
		must(b.t, err)
		if used > mostLua {
			b.t.Errorf("%s leaves %d MiB in the memory of scripts, at most %d expected", name, used>>20, mostLua>>20)
		}
		return
	}
	b.t.Fatal("the server does not say how much memory scripts have")
}
