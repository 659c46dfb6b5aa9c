package dashboard

import (
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
)

// auditShown is how many actions the page shows.
const auditShown = 200

// auditBody is the page of operators' actions.
type auditBody struct {
	Now  time.Time
	Rows []auditRow
	// More is true if the store may have more actions.
	More bool
}

// auditRow is an action in the table.
type auditRow struct {
	service.AuditRow
	Key string
	At  when
	// On describes what the action was done to, and Result how it ended.
	On, Result  string
	Class, Sign string
}

// auditPage lists the actions of operators, for a queue if the page is about one.
func (c *call) auditPage() (*view, error) {
	s, err := c.look()
	if err != nil {
		return nil, err
	}

	b := &auditBody{Now: s.view.Now}
	reply, err := asked(c, service.Audit, "", &service.AuditQuery{Queue: c.queue, ID: c.r.URL.Query().Get("id"), Limit: auditShown})
	if err != nil {
		return nil, err
	}

	for at := range reply.Items {
		b.Rows = append(b.Rows, auditRowOf(reply.Items[at].Value(), b.Now))
	}
	b.More = len(b.Rows) == auditShown
	return &view{page: "audit", title: "Audit", live: true, body: b}, nil
}

func auditRowOf(a *service.AuditRow, now time.Time) auditRow {
	r := auditRow{
		AuditRow: *a,
		Key:      strconv.FormatInt(a.At.UnixMicro(), 10),
		At:       when{a.At, later(now, a.At)},
		On:       on(a),
		Class:    "good",
		Sign:     "✓",
		Result:   "done",
	}

	switch {
	case !a.Ended:
		r.Class, r.Sign, r.Result = "late", "▲", "not ended"
	case a.Error != "":
		r.Class, r.Sign, r.Result = "bad", "●", a.Error
	case a.Named > 0 || a.Handled > 0 || chooses(a):
		r.Result = figures.Count(int64(a.Handled)) + " changed"
	}
	return r
}

// later returns the later of two times: an action may have begun after the other parts of the page
// were read.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// chooses reports whether the action is one on all entries that match.
func chooses(a *service.AuditRow) bool {
	return strings.HasSuffix(a.Action, " all") ||
		strings.Contains(a.Action, " all ") ||
		strings.HasSuffix(a.Action, " failed")
}

// on describes what an action was done to.
func on(a *service.AuditRow) string {
	chosen := a.ChosenBy()
	switch {
	case len(a.IDs) > 0:
		text := strings.Join(a.IDs[:min(len(a.IDs), 3)], ", ")
		if more := a.Named - min(len(a.IDs), 3); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		return text
	case chosen != "":
		return chosen
	case chooses(a):
		return "all"
	}
	return ""
}
