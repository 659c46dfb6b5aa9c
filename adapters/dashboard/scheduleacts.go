package dashboard

import (
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

	of.question = func(c *call) string {
		form := c.r.PostForm
		if form.Get("all") != "" {
			return fmt.Sprintf("%s all schedules %s of %s?", of.verb, shown(form.Get("name")), c.queue)
		}
		return fmt.Sprintf("%s the schedule %s?", of.verb, shown(form.Get("name")))
	}
	return of
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
