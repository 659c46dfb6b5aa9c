package redis

import "testing"

func TestAnExchangeOfPushesIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []int
		want  []int // how many calls each exchange has
	}{
		{"small ones", make([]int, 100), []int{64, 36}},
		{"as large as may be", repeat(coalesceCallBytes, 40), []int{16, 16, 8}},
		{"one that is too large by itself", []int{2 * coalesceBytes, 1, 1}, []int{1, 2}},
		{"up to the last byte", []int{coalesceBytes - 1, 1, 1}, []int{2, 1}},
	} {
		var p coalescer
		p.add(&waitingCall{}) // makes the sender that takes
		p.take()
		for _, size := range tt.sizes {
			p.waiting = append(p.waiting, &waitingCall{call: call{size: size}})
		}
		for i, want := range append(tt.want, 0) {
			if got := len(p.take()); got != want {
				t.Errorf("%s: exchange %d has %d calls, want %d", tt.name, i, got, want)
			}
		}
	}
}

func repeat(size, n int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}
