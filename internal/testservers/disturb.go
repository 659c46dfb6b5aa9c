package testservers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// disturb calls cut, which counts what it has cut, at that interval until the test ends.
// The test fails if cut does, or has cut nothing.
//
// Where a cut takes long, those who are cut have as little of the machine. They get
// five times as long until the next, or they would be cut again before they have done
// anything.
func disturb(t testing.TB, interval time.Duration, count *atomic.Int64, cut func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	begun, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		for took := time.Duration(0); ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(interval-took, 5*took)):
			}
			began := time.Now()
			if err := cut(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("cut connections: %v", err)
				return
			}
			took = time.Since(began)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		n := count.Load()
		if n == 0 {
			t.Error("not a single connection was cut")
		}
		t.Logf("%d connections were cut in %v", n, time.Since(begun).Round(time.Second))
	})
}
