package dashboard

import (
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
)

// counted is the figures in a page's frame beside its links: how much is wrong, and how much a
// queue holds.
type counted struct {
	// Known is true if the store has been read, and Queue if the page's queue was found there.
	Known, Queue bool
	// Red and Amber are the numbers of problems that the overview has.
	Red, Amber int
	// Wrong is the number of problems that concern the page: all, or those of its queue.
	Wrong                  int
	Waiting, Running, Dead int64
}

// counted counts for the frame of a page. For live pages it looks at the store, as the overview
// does.
func (c *call) counted(live bool) (n counted) {
	s, _, _ := c.looker.known()
	if live {
		if looked, err := c.looker.look(c.r.Context()); err == nil {
			s = looked
		}
	}

	s = c.sight.of(s)
	if s == nil || s.view.Stats == nil && s.failed == nil {
		return n
	}
	n.Known = true

	for at := range s.wrong {
		l := &s.wrong[at]
		switch l.Kind.Level() {
		case wrong.Red:
			n.Red++
		case wrong.Amber:
			n.Amber++
		}
		if c.queue == "" || l.Of(c.queue) != nil {
			n.Wrong++
		}
	}

	for at := range s.view.Stats {
		if q := &s.view.Stats[at]; c.queue != "" && q.Queue.Name == c.queue {
			n.add(q)
		}
	}
	return n
}

func (n *counted) add(q *inspect.QueueStats) {
	n.Queue, n.Waiting, n.Running, n.Dead = true, q.Length(), q.Claimed-q.Orphaned, q.Dead
}

// held is a figure beside the link of a queue's page.
type held struct {
	Known bool
	N     int64
}
