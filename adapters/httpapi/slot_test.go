package httpapi

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// The slot of a job is the key of a rate, such as a tenant, so it is redacted like an id.
func TestTheSlotOfAJobIsShownAsAnIDIs(t *testing.T) {
	for name, want := range map[string]string{"shown": "tenant", "redacted": "orders t"} {
		h := newHouse(t, Options{})
		if name == "redacted" {
			h = newHouse(t, Options{RedactID: func(queue, id string) string { return queue + " " + id[:1] }})
		}
		h.push("a", 0, "p")
		index := core.ShardOf("a", houseShards)
		if rows := get[list[jobRow]](h, "/queues/orders/jobs").Items; rows[0].Slot != "" {
			t.Errorf("%s: a job without a slot has %q", name, rows[0].Slot)
		}

		claim := h.turn(index, 1)[0]
		h.turn(index, 0, claim.PutOff(-time.Second, "tenant"))
		if rows := get[list[jobRow]](h, "/queues/orders/jobs").Items; rows[0].Slot != want {
			t.Errorf("%s: the queued job has the slot %q, want %q", name, rows[0].Slot, want)
		}
		h.turn(index, 1)
		if rows := get[list[claimedRow]](h, "/queues/orders/claimed").Items; rows[0].Slot != want {
			t.Errorf("%s: the claimed job has the slot %q, want %q", name, rows[0].Slot, want)
		}
	}
}
