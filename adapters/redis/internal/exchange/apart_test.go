package exchange

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The patience for a server grows with the duration of another server's answer: on a busy machine
// all are slow, and none of them is a straggler for that.
func TestPatienceGrowsWithWhatAnAnswerTook(t *testing.T) {
	for name, tt := range map[string]struct {
		first, second time.Duration
		err           error
	}{
		"both at once":                      {time.Millisecond, 2 * time.Millisecond, nil},
		"one hangs":                         {time.Millisecond, time.Minute, ErrStraggler},
		"all are slow":                      {500 * time.Millisecond, 2 * time.Second, nil},
		"one hangs where the other is slow": {500 * time.Millisecond, time.Minute, ErrStraggler},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				after := func(d time.Duration) func(func(int)) {
					return func(report func(int)) { time.Sleep(d); report(0) }
				}

				all := []func(func(int)){after(tt.first), after(tt.second)}
				answers := 0
				err := Together(t.Context(), make(workerPool), 400*time.Millisecond, all, func(int) (bool, error) {
					answers++
					return true, nil
				})
				if want := map[bool]int{true: 2, false: 1}[tt.err == nil]; !errors.Is(err, tt.err) || answers != want {
					t.Errorf("error %v after %d answers, want %v after %d", err, answers, tt.err, want)
				}

				time.Sleep(2 * time.Minute) // until hanging calls and the idle workers have ended
			})
		})
	}
}
