package dashboard

import (
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/internal/service"
)

// rights are the actions that a page has forms for: those that its user may take. The service
// checks again when one is taken.
type rights struct {
	c     *call
	known map[rightTo]bool
}

// rightTo is an action on a queue, or on servers if the queue is empty, and whether it is an
// action on all that match.
type rightTo struct {
	op, queue string
	all       bool
}

// may returns the rights of a request.
func (c *call) may() *rights { return &rights{c, map[rightTo]bool{}} }

// To reports whether one of the given actions may be taken on named entries of the page's queue.
func (r *rights) To(ops ...string) bool {
	for _, op := range ops {
		if r.has(rightTo{op, r.c.queue, false}) {
			return true
		}
	}
	return false
}

// Acts reports whether the page may have any forms.
func (r *rights) Acts() bool { return !r.c.o.API.ReadOnly }

// On reports whether an action may be taken on named entries of a queue.
func (r *rights) On(queue, op string) bool { return r.has(rightTo{op, queue, false}) }

// AllOn reports whether an action may be taken on all matching entries of a queue.
func (r *rights) AllOn(queue, op string) bool { return r.has(rightTo{op, queue, true}) }

// All reports whether an action may be taken on all matching entries of the page's queue.
func (r *rights) All(op string) bool { return r.has(rightTo{op, r.c.queue, true}) }

// has checks each right once.
func (r *rights) has(to rightTo) bool {
	o, known := ops[to.op]
	if !known || r.c.o.API.ReadOnly {
		return false
	}
	if !o.ofQueue {
		to.queue = ""
	}
	may, asked := r.known[to]
	if !asked {
		may = r.c.who.May(service.Action{Verb: string(verbOf(to.op)), Queue: to.queue, Bulk: to.all}) == nil
		r.known[to] = may
	}
	return may
}

// verbOf returns the API's name of a form's action.
func verbOf(op string) httpapi.Verb {
	switch op {
	case "drop":
		return httpapi.VerbCancel
	case "backfill-schedule":
		return httpapi.VerbRunSchedule
	case "resume-schedule":
		return httpapi.VerbPauseSchedule
	case "untrack":
		return httpapi.VerbTrack
	case "work":
		return httpapi.VerbDrain
	}
	return httpapi.Verb(op)
}
