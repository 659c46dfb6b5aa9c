// A user's test of the order, the retries and the burial of a handler: the whole file, measured by
// TestAUsersTestIsShortAndQuick.
package skeintest_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/skeintest"
)

func TestOrders(t *testing.T) {
	s := skeintest.New()
	for _, n := range []int{2, 1, 0} { // 0 is an item that the shop does not have
		if err := orders.Push(t.Context(), s.Client, "order-1", item{Number: n}); err != nil {
			t.Fatal(err)
		}
	}
	skeintest.AssertEvents(t, s.Drain(t, 24*time.Hour, orders.Handler(ship)),
		`0s orders order-1 [{"Number":0} {"Number":1} {"Number":2}] failed: no item 0`,
		`15s orders order-1 [{"Number":0} {"Number":1} {"Number":2}] exhausted: no item 0; buried [{"Number":0}]`,
		`15s orders order-1 [{"Number":1} {"Number":2}] done`,
	)
	skeintest.AssertMorgue(t, s, orders,
		skeintest.Job[item]{ID: "order-1", Payloads: []item{{0}}, Retries: 3, LastError: "no item 0"})
}
