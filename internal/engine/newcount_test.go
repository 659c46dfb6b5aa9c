package engine_test

import (
	"context"
	"testing"
)

// A node that missed a new shard count can have no shard of the queue, so others share all of them.
func TestANodeThatMissedANewShardCountTakesNoPartOfTheQueue(t *testing.T) {
	inWorld(t, func(w *world) {
		late := w.start(each(succeed), shards(3), sharing)
		w.sleep(poll)
		late.link.set(hanging)
		w.sleep(2 * ttl)

		if err := w.store.Forget(context.Background(), queueName); err != nil {
			w.Fatal(err)
		}
		w.declare(5)
		late.link.set(up)
		w.sleep(ttl)

		a := w.audit()
		w.start(a.watch(succeed), shards(5), sharing)
		w.sleep(ttl)

		for index := range 5 {
			w.push(idIn(index, 5), "x")
		}
		w.sleep(poll)
		for index := range 5 {
			a.wantRuns(idIn(index, 5), 1)
		}

		for _, n := range w.nodesListed() {
			if serves := len(n.Queues) > 0; serves != (n.Owner != late.owner) {
				w.Errorf("%s announces the queues %v", n.Name, n.Queues)
			}
		}
	})
}
