package kills_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
)

// hungWorker is a server whose jobs never end. Its leases are short.
func hungWorker() error {
	return journalWorker(takenOver, skein.ServerOptions{Lanes: 2, LeaseTTL: 2 * time.Second}, func() { select {} })
}

// A handler that hangs ends only with its process. If its job was cancelled with --drop before, the
// next owner of the shard drops the job and never runs it. The jobs that ran beside it run again.
func TestAHungJobThatWasDroppedBeforeTheKillRunsNoMore(t *testing.T) {
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			store := kit.Open(t, url)
			client := skein.NewClient(store, skein.ClientOptions{})
			must(t, takenOver.PushMany(t.Context(), client, []skein.Entry[int]{{ID: "hung"}, {ID: "beside"}}))
			j := newJournal(t)
			victim := startProcess(t, "hung", url, j)
			j.await(t, lineBegan, victim.pid(), 2)

			i := inspect.New(store, inspect.Options{})
			if r, err := i.Cancel(t.Context(), takenOver.Name(), []string{"hung"},
				inspect.CancelModeDrop); err != nil ||
				r.Handled != 1 {
				t.Fatalf("the cancel: %+v, %v", r, err)
			}
			victim.kill(t)
			successor := startProcess(t, "successor", url, j)
			j.await(t, lineEnded, successor.pid(), 1)
			successor.interrupt(t)

			all := replay(t, j.read(t))
			for id, want := range map[string]executions{
				"hung":   {began: 1, died: 1, recoveries: []int{0}},
				"beside": {began: 2, ended: 1, died: 1, recoveries: []int{0, 1}},
			} {
				if got := all[id]; !cmp.Equal(want, got, cmp.AllowUnexported(executions{})) {
					t.Errorf("%s: %+v, want %+v", id, got, want)
				}
			}
			v, err := i.Why(t.Context(), takenOver.Name(), "hung")
			if err != nil || v.Reason != inspect.NothingQueued {
				t.Errorf("then the hung job is %v, %v; want that nothing is queued", v.Reason, err)
			}
		})
	}
}
