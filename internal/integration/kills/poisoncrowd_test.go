package kills_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

const (
	crowdOrders = 300
	// crowdTakes is how long a harmless job takes if it runs alone. crowdKills is when the poison
	// kills its process if it runs alone.
	crowdTakes = 40 * time.Millisecond
	crowdKills = 20 * time.Millisecond
	// crowdGathers is how long the poison waits at most for all others to run beside it.
	crowdGathers = 30 * time.Second
)

// poisonCrowdWorker is a process with more lanes than there are jobs. While jobs run beside
// one another, none ends, and the poison kills the process when all of them run. Those that
// run alone take a moment.
func poisonCrowdWorker() int {
	journal := journal{os.Getenv(journalVariable)}
	var together atomic.Int64
	gathered := make(chan struct{})
	return workPoisoned(2*crowdOrders, func(ctx context.Context, job *skein.Job[string]) error {
		token, _ := skein.Fence(ctx)
		line := journalLine{what: lineBegan, pid: os.Getpid(), id: job.ID, token: token, recoveries: job.Recoveries}
		journal.write(line)
		alone := job.Recoveries >= core.AloneRecoveries
		if !alone && together.Add(1) == crowdOrders+1 {
			close(gathered)
		}
		switch {
		case job.ID == poisonID && alone:
			time.Sleep(crowdKills)
			killMyself()
		case job.ID == poisonID:
			select {
			case <-gathered:
			case <-time.After(crowdGathers):
			}
			killMyself()
		case alone:
			time.Sleep(crowdTakes)
		default:
			<-ctx.Done()
			return context.Cause(ctx)
		}
		line.what = lineEnded
		journal.write(line)
		return nil
	})
}

// A job that kills its process while hundreds run beside it is found, and buried alone.
// Each of the others is done, and runs again only after a death: one that ends a moment
// before it may not have been settled.
func TestPoisonIsFoundAmongHundreds(t *testing.T) {
	tier.Long(t, "kills processes at length")
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var orders []string
			for n := range crowdOrders {
				orders = append(orders, fmt.Sprint("quiet-", n)) // which the poison comes before
			}
			j := newJournal(t)
			killed := workPoisonBeside(t, "poison-crowd", open(t), j, orders)
			lines := j.read(t)
			for i, pid := range killed {
				beside := len(runningOf(lines, pid)) - 1
				t.Logf("death %d: %d others were running", i+1, beside)
				if i < core.AloneRecoveries && beside != crowdOrders {
					t.Errorf("death %d: %d others were running, want all %d", i+1, beside, crowdOrders)
				}
			}
			all := replay(t, lines)
			for _, id := range orders {
				if e := all[id]; e.ended == 0 || e.began != e.ended+e.died || !rises(e.recoveries) || e.began > len(killed)+1 {
					t.Errorf("%s: %+v", id, e)
				}
			}
			if e := all[poisonID]; e.ended != 0 || e.died != len(killed) {
				t.Errorf("%s: %+v, of %d deaths", poisonID, e, len(killed))
			}
		})
	}
}

// rises reports whether each number is larger than the one before.
func rises(numbers []int) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			return false
		}
	}
	return true
}
