package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// A reply about a job on its last chance names the job that it waits for, redacted by the rules of
// its queue. A job of another queue is not named, since the caller need not have rights there.
func TestWhyNamesTheJobThatHasTheLastChance(t *testing.T) {
	h := newHouse(t, Options{RedactID: func(queue, id string) string { return queue + " " + id[:1] }})
	const waits = "waits"
	shard := core.Shard{Queue: "orders", Index: core.ShardOf(waits, houseShards)}
	job := core.Job{
		ID:       waits,
		State:    core.State{RetryCount: core.FreshRetryCount, Recoveries: 3},
		Payloads: []core.Payload{{Data: []byte("p")}},
	}
	r := ports.ImportRequest{Shard: shard, Shards: houseShards, Generation: 1, Jobs: []core.Job{job}}
	if _, err := h.store.Import(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	h.turn(shard.Index, 0) // takes the lease

	for queue, want := range map[string]service.LastChanceRow{
		"orders": {Shard: "orders/0", ID: "orders c"},
		"mail":   {Shard: "mail/0"},
	} {
		n := ports.Node{Owner: "owner", Name: "blue", Lanes: 8, Queues: []string{"orders"}, Status: ports.NodeStatus{
			Queues:     []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 3}},
			LastChance: ports.LastChance{Shard: core.Shard{Queue: queue}, ID: "culprit"},
		}}
		if _, err := h.store.Announce(t.Context(), ports.AnnounceRequest{Node: n, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		w := answerOf(h.api, request(http.MethodGet, base+"/why?queue=orders&id="+waits, ""))
		holdsNoSecret(t, queue, w.Body.String(), "culprit")
		why := read[service.WhyReply](t, w)
		if why.Reason != "behind a last chance" || why.Owner == nil || why.Owner.MaxRecoveries != 3 ||
			why.Owner.LastChance == nil || *why.Owner.LastChance != want {
			t.Errorf("%s: %+v, owner %+v; want %+v", queue, why, why.Owner, want)
		}
		if name := map[string]string{
			"orders": `job "orders c" of orders/0`,
			"mail":   "a job of mail/0",
		}[queue]; !strings.Contains(why.Text, name) {
			t.Errorf("%s: %s; want that it names %s", queue, why.Text, name)
		}
		nodes := get[list[nodeRow]](h, "/nodes")
		if len(nodes.Items) != 1 || nodes.Items[0].LastChance == nil ||
			*nodes.Items[0].LastChance != (service.LastChanceRow{Shard: queue + "/0", ID: queue + " c"}) {
			t.Errorf("%s: the server is %+v", queue, nodes.Items)
		}
	}
}
