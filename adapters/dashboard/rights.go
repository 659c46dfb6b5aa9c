package dashboard

import "github.com/skeinq/skein/adapters/httpapi"

// rights say which actions a page has forms for: those that whoever asked for it may take. The API asks again when one is taken.
type rights struct {
	c     *call
	known map[rightTo]bool
}

// rightTo is an action on a queue, which servers don't have, and whether it is one on all that match.
type rightTo struct {
	op, queue string
	all       bool
}

// may returns the rights of a request.
func (c *call) may() *rights { return &rights{c, map[rightTo]bool{}} }

// To reports whether one of some actions may be taken on what is named of the page's queue.
func (r *rights) To(ops ...string) bool {
	for _, op := range ops {
		if r.has(rightTo{op, r.c.queue, false}) {
			return true
		}
	}
	return false
}

// Acts reports whether there may be any forms.
func (r *rights) Acts() bool { return !r.c.o.API.ReadOnly }

// On reports whether an action may be taken on what is named of a queue.
func (r *rights) On(queue, op string) bool { return r.has(rightTo{op, queue, false}) }

// All reports whether an action may be taken on all that match of the page's queue.
func (r *rights) All(op string) bool { return r.has(rightTo{op, r.c.queue, true}) }

// has asks once for each.
func (r *rights) has(to rightTo) bool {
	o, known := ops[to.op]
	if !known || r.c.o.API.ReadOnly {
		return false
	}
	if !o.ofQueue {
		to.queue = ""
	}
	allow := r.c.o.API.Authorize
	if allow == nil {
		return true
	}
	may, asked := r.known[to]
	if !asked {
		may = allow(r.c.r, httpapi.Action{Verb: verbOf(to.op), Queue: to.queue, Bulk: to.all}) == nil
		r.known[to] = may
	}
	return may
}

// verbOf returns the API's name of what a form does.
func verbOf(op string) httpapi.Verb {
	switch op {
	case "drop":
		return httpapi.VerbCancel
	case "work":
		return httpapi.VerbDrain
	}
	return httpapi.Verb(op)
}
