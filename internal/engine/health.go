package engine

import (
	"log/slog"
	"sync/atomic"
)

// health says once that the store can't be reached and once that it is back,
// however many loops notice.
type health struct {
	log     *slog.Logger
	failing atomic.Int32
}

// probe is one loop's view; it belongs to a single goroutine.
type probe struct {
	health *health
	down   bool
}

func (p *probe) failed(doing string, err error) {
	if p.down {
		return
	}
	p.down = true
	if p.health.failing.Add(1) == 1 {
		p.health.log.Warn("skein: the store fails; retrying until it answers", "doing", doing, "error", err)
	}
}

func (p *probe) ok() {
	if !p.down {
		return
	}
	p.down = false
	if p.health.failing.Add(-1) == 0 {
		p.health.log.Info("skein: the store answers again")
	}
}
