package testservers

import (
	"context"
	"testing"
	"time"
)

// disturb calls cut once in each interval until the test ends. cut returns how many connections it
// has cut. The test fails if cut fails, or if no connection was cut.
//
// If a cut takes long, the machine is busy, and the programs that were cut are slow too. So the
// pause before the next cut is at least five times as long as the cut took. Otherwise the programs
// would be cut again before they have done anything.
func disturb(t testing.TB, interval time.Duration, cut func(context.Context) (int64, error)) {
	t.Helper()

	begun, total := time.Now(), int64(0)
	stop, done := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(done)
		for took := time.Duration(0); ; {
			select {
			case <-stop:
				return
			case <-time.After(max(interval-took, 5*took)):
			}

			began := time.Now()
			n, err := cutOnce(cut)
			if err != nil {
				t.Errorf("cut connections: %v", err)
				return
			}

			total += n
			took = time.Since(began)
		}
	}()

	t.Cleanup(func() {
		close(stop)
		<-done
		if total == 0 {
			t.Error("not a single connection was cut")
		}
		t.Logf("%d connections were cut in %v", total, time.Since(begun).Round(time.Second))
	})
}

// cutOnce uses a context of its own. A test may end when it sees the first cut, which is counted
// only when the server has answered.
func cutOnce(cut func(context.Context) (int64, error)) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	return cut(ctx)
}
