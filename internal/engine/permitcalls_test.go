package engine_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

// gatedObserver takes until its gate is open to hear that a call for permits has failed.
type gatedObserver struct {
	ports.NopObserver
	gate    chan struct{}
	waiting chan struct{} // has an element for each that waits
}

func (o *gatedObserver) StoreFailed(e ports.FailureEvent) {
	if e.Call == "permits" {
		o.waiting <- struct{}{}
		<-o.gate
	}
}

// A node ends although many calls for permits have ended at one moment.
func TestCallsForPermitsThatEndAtOnceDoNotKeepANodeRunning(t *testing.T) {
	inWorld(t, func(w *world) {
		const calls = 2000
		o := &gatedObserver{gate: make(chan struct{}), waiting: make(chan struct{}, calls)}
		l := w.permitLedger(1)
		n := w.start(nil, serving(l.queue(0, 1, time.Second)), pooled(1), func(s *setup) {
			s.Observer = o
			s.link.refuse = func(method string) bool { return method == "Permit" }
		})
		w.sleep(poll)
		w.pushEach(1)
		for range calls - 1 {
			<-o.waiting
		}
		n.link.change(func() { n.link.refuse = func(string) bool { return false } })
		close(o.gate)
		w.sleep(ttl)
		w.wantCounts(0, 0, 1, 0)
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked+time.Second)
	})
}
