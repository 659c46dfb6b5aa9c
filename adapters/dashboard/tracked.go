package dashboard

import (
	"strconv"
	"time"

	"github.com/skeinq/skein/internal/service"
)

// maxTracked is the maximum number of tracked ids on a page. Each verdict needs a read of the
// store.
const maxTracked = 20

// trackedRow is a tracked id with its verdict.
type trackedRow struct {
	ID, Verdict, Class string
	Since, Until       time.Time
}

// trackedBody is the page of the tracked ids of a queue.
type trackedBody struct {
	Queue string
	Now   time.Time
	Rows  []trackedRow
	// Later is true if other ids come before the page. Next is the place where the next page
	// begins, or "".
	Later bool
	Next  string
	May   *rights
}

// trackedPage makes the page of the tracked ids of a queue.
func (c *call) trackedPage() (*view, error) {
	_, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	after, _ := strconv.Atoi(c.r.URL.Query().Get("after"))
	after = max(0, after)
	reply, err := asked(c, service.Tracked, c.queue, &service.TrackedQuery{After: after, Limit: maxTracked})
	if err != nil {
		return nil, err
	}

	b := &trackedBody{Queue: c.queue, Now: stats.Now, Later: after > 0, Next: reply.Next, May: c.may()}
	for at := range reply.Items {
		t := reply.Items[at].Value()
		row := trackedRow{
			ID:      t.ID,
			Verdict: sentence(formatted(t.Verdict.Sentence)),
			Class:   classes[t.Verdict.Reason],
			Since:   t.Since,
			Until:   t.Until,
		}
		if t.Reason == service.Unreached {
			row.Verdict, row.Class = sentence(t.Text), "late"
		}
		b.Rows = append(b.Rows, row)
	}
	return &view{page: "tracked", title: c.queue + ": tracked", live: true, body: b}, nil
}

// onTracked returns the function of an action on the tracked ids of a queue.
func onTracked(o service.Op[service.TrackBody, service.TrackReply]) func(*call) (int, error) {
	return func(c *call) (int, error) {
		_, err := asked(c, o, c.queue, &service.TrackBody{ID: c.r.PostForm.Get("id")})
		return 0, err
	}
}
