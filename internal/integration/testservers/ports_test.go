package testservers

import (
	"slices"
	"sync"
	"testing"
)

// Ports that are reserved at once differ, and are free again once they are released.
func TestPortsDoNotCollide(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var all []*port
	var reserving sync.WaitGroup

	for range 20 {
		reserving.Go(func() {
			ports, err := reserve(6)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, ports...)
		})
	}
	reserving.Wait()

	chosen := numbers(all)
	slices.Sort(chosen)
	if n := len(slices.Compact(chosen)); n != 120 {
		t.Errorf("%d of 120 ports differ", n)
	}

	release(all)
	for _, p := range all {
		if p.claim != nil && p.claim.Close() == nil {
			t.Errorf("port %d is still reserved", p.number)
		}
	}
}
