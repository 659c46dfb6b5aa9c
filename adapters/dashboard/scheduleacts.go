package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"github.com/skeinq/skein/internal/service"
)

// selected returns the schedules that a form names: one, or with the field all those of a name.
func (c *call) selected() (service.ScheduleBody, error) {
	form := c.r.PostForm
	b := service.ScheduleBody{ID: service.Given(form.Get("id")), Name: service.Given(form.Get("name"))}
	if b.Name == "" || (b.ID == "") != (form.Get("all") != "") {
		return b, errForm
	}
	return b, nil
}

// onSchedules completes an action on the schedules that a form names.
func onSchedules(do scheduleAct, of op) op {
	of.ofQueue = true

	of.do = func(c *call) (int, error) {
		b, err := c.selected()
		if err != nil {
			return 0, err
		}

		r, err := do(c, b)
		c.looker.detailAgain(c.queue)
		if err != nil {
			return 0, err
		}

		if len(r.Unreached) > 0 {
			return 0, newProblem(http.StatusServiceUnavailable, "Some schedules could not be reached", fmt.Sprintf(
				"Changed: %d. Shards that can't be reached now: %d. Repeat the action when they can be reached.",
				r.Changed, len(r.Unreached)))
		}
		return r.Changed, nil
	}

	of.question = func(c *call) (question, about string, err error) {
		b, err := c.selected()
		if err != nil {
			return "", "", err
		}

		asks, name := cmp.Or(of.asks, of.verb), shown(string(b.Name))
		if b.ID != "" {
			id := shown(c.door.Service.ID(c.queue, string(b.ID)))
			return fmt.Sprintf("%s the schedule %s of %s in %s?", asks, name, id, c.queue), "", nil
		}

		ids, err := c.idsOf(string(b.Name))
		if err != nil {
			return "", "", err
		}
		return fmt.Sprintf("%s the schedules %s of %s in %s?", asks, name, ids.text(), c.queue), ids.samples(), nil
	}
	return of
}

// namedIDs are the ids that have a schedule of a name.
type namedIDs struct {
	// first are the first ids, and count is the number of all. more is true if there may be more.
	first []string
	count int64
	more  bool
	// unreached are shards that can't be reached, whose ids are missing.
	unreached []string
}

// sampleIDs is the number of ids that a question names.
const sampleIDs = 5

// text states how many ids there are.
func (n *namedIDs) text() string {
	switch ids := plural(n.count, "id"); {
	case n.more:
		return "at least " + ids
	case n.count == 1:
		return "the only id with it"
	default:
		return "all " + ids
	}
}

// samples names some of the ids.
func (n *namedIDs) samples() string {
	var ids []string
	for _, id := range n.first[:min(len(n.first), sampleIDs)] {
		ids = append(ids, line(id))
	}

	text := "All ids with a schedule of this name are affected, also those that a filter or a page leaves out: "
	if n.more {
		text += "at least "
	}
	text += plural(n.count, "id") + ", such as " + strings.Join(ids, ", ") + "."
	if len(n.unreached) > 0 {
		text += fmt.Sprintf(" Those of %s that can't be reached now are missing.",
			plural(int64(len(n.unreached)), "shard"))
	}
	return text
}

// idsOf returns the ids that have a schedule of a name. It counts them by the list of names, which
// costs the store less than a list of the schedules.
func (c *call) idsOf(name string) (*namedIDs, error) {
	query := service.SchedulesQuery{Name: name, Limit: scheduleRows}
	reply, err := asked(c, service.Schedules, c.queue, &query)
	if err != nil {
		return nil, err
	}
	if len(reply.Items) == 0 {
		return nil, newProblem(http.StatusNotFound, "There is no such schedule",
			"No id that can be reached now has a schedule of this name. Nothing was changed.")
	}

	n := &namedIDs{count: int64(len(reply.Items)), unreached: reply.Unreached}
	for at := range reply.Items {
		n.first = append(n.first, reply.Items[at].Value().ID)
	}
	if n.more = reply.Next != "" || len(reply.Unreached) > 0; reply.Next == "" {
		return n, nil
	}

	for names := (service.ScheduleNamesQuery{Limit: scheduleRows}); ; {
		page, err := asked(c, service.ScheduleNames, c.queue, &names)
		if err != nil {
			return nil, err
		}
		for at := range page.Items {
			if page.Items[at].Value().Name == name {
				n.count, n.unreached, n.more = page.Items[at].Value().Count, page.Unreached, len(page.Unreached) > 0
				return n, nil
			}
		}
		if names.After = page.Next; names.After == "" || c.cost > lookTime {
			return n, nil
		}
	}
}

// scheduleAct takes an action on the schedules of a selection.
type scheduleAct func(*call, service.ScheduleBody) (*service.ScheduleResult, error)

// selectedBy returns an action that needs only the selection.
func selectedBy(o service.Op[service.ScheduleBody, service.ScheduleResult]) scheduleAct {
	return func(c *call, b service.ScheduleBody) (*service.ScheduleResult, error) {
		return asked(c, o, c.queue, &b)
	}
}

// pauseSchedules pauses schedules. Their note is the reason that the form gives.
func pauseSchedules(c *call, b service.ScheduleBody) (*service.ScheduleResult, error) {
	note := strings.Join(strings.Fields(c.r.PostForm.Get("reason")), " ")
	return asked(c, service.PauseSchedules, c.queue, &service.SchedulePauseBody{ScheduleBody: b, Note: note})
}
