package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/skeinq/skein/internal/service"
)

// maxNamed is the maximum number of queues that a search lists by their names.
const maxNamed = 50

// searchBody has the queues whose names have the text, and the places where it is an id.
type searchBody struct {
	ID string
	// Queues have the text in their names, and Cut is how many more do.
	Queues []string
	Cut    int
	Found  []foundIn
	// NoID is the reason why the text can't be an id, or "".
	NoID string
	// Unreached are the shards of the id that can't be reached. Failed are queues whose schedules
	// of the id can't be read, with the reasons. Unasked is the number of queues that were not
	// asked, since the time was over.
	Unreached, Failed []string
	Unasked           int
}

// Whole reports whether all queues were searched.
func (b *searchBody) Whole() bool {
	return len(b.Unreached) == 0 && len(b.Failed) == 0 && b.Unasked == 0
}

// search finds a text as the name of a queue, and as an id, of a job or with schedules, in all queues
// that the user may see. It goes to the only hit if there is one. An id, or the whole name of a
// queue, counts more than a part of a name.
func (c *call) search() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}

	text := c.r.URL.Query().Get("for")
	b := &searchBody{ID: text}
	exact := text != "" && b.addQueues(s, text)
	if err := c.findID(b, s); err != nil {
		p := problemOf(err)
		if p == nil || p.Status != http.StatusBadRequest || len(b.Queues) == 0 {
			return nil, err
		}
		b.NoID = p.Detail
	}

	switch {
	case !b.Whole():
	case len(b.Found) == 0 && (exact || len(b.Queues) == 1):
		return &view{to: href("queue", "q", b.Queues[0])}, nil
	case len(b.Found) == 1 && !exact:
		return &view{to: href("id", "q", b.Found[0].Queue, "id", text)}, nil
	}
	return &view{page: "search", title: "Find", body: b}, nil
}

// addQueues adds the queues that have a text in their names, whatever its case, and reports whether
// the first one is the text.
func (b *searchBody) addQueues(s *snapshot, text string) (exact bool) {
	for at := range s.view.Stats {
		switch name := s.view.Stats[at].Queue.Name; {
		case name == text:
			b.Queues, exact = slices.Insert(b.Queues, 0, name), true
		case strings.Contains(strings.ToLower(name), strings.ToLower(text)):
			b.Queues = append(b.Queues, name)
		}
	}
	if b.Cut = max(0, len(b.Queues)-maxNamed); b.Cut > 0 {
		b.Queues = b.Queues[:maxNamed]
	}
	return exact
}

// findID adds the queues with a job or with schedules of the id.
func (c *call) findID(b *searchBody, s *snapshot) error {
	if err := c.findJobs(b, s); err != nil {
		return err
	}
	c.findSchedules(b, s)
	return nil
}

// findJobs adds the queues with a job or a dead letter of the id.
func (c *call) findJobs(b *searchBody, s *snapshot) error {
	queues := []string{""} // all at once
	if !c.sight.all {
		queues = s.queues()
	}

	for at, queue := range queues {
		if c.cost > lookTime {
			b.Unasked += len(queues) - at
			break
		}
		reply, err := asked(c, service.Find, queue, &service.FindQuery{Queue: queue, ID: b.ID})
		if queue != "" && forgotten(err) {
			continue
		}
		if err != nil {
			return err
		}
		b.Found = append(b.Found, foundOf(reply.Items)...)
		b.Unreached = append(b.Unreached, reply.Unreached...)
	}

	return nil
}

// forgotten reports whether a queue of the snapshot was forgotten meanwhile.
func forgotten(err error) bool {
	p := problemOf(err)
	return p != nil && p.Name == "unknown-queue"
}

// findSchedules adds the queues with schedules of the id.
func (c *call) findSchedules(b *searchBody, s *snapshot) {
	for at := range s.view.Stats {
		queue := s.view.Stats[at].Queue.Name
		if c.cost > lookTime {
			b.Unasked++
			continue
		}

		reply, err := asked(c, service.Schedules, queue, &service.SchedulesQuery{ID: b.ID, Limit: scheduleRows})
		if p := problemOf(err); p != nil && p.Name == "forbidden" || forgotten(err) {
			continue
		}
		if err != nil {
			b.Failed = append(b.Failed, queue+": "+c.errorText(queue, b.ID, err.Error()))
			continue
		}

		b.Unreached = appendNew(b.Unreached, reply.Unreached)
		if n := len(reply.Items); n > 0 {
			text := plural(int64(n), "schedule")
			if reply.Next != "" {
				text = "at least " + text
			}
			b.add(queue, reply.Items[0].Value().Shard.String(), text)
		}
	}
}

// add adds a place in a queue.
func (b *searchBody) add(queue, shard, where string) {
	at := slices.IndexFunc(b.Found, func(f foundIn) bool { return f.Queue == queue })
	if at < 0 {
		b.Found = append(b.Found, foundIn{queue, shard, where})
		return
	}
	b.Found[at].Where += ", " + where
}

// foundIn is a place in a queue where an id was found.
type foundIn struct{ Queue, Shard, Where string }

// foundOf lists the queues that hold something of an id.
func foundOf(rows []service.Row[service.FoundRow]) (list []foundIn) {
	for at := range rows {
		var places []string
		row := rows[at].Value()
		for _, place := range placesOf(row) {
			places = append(places, place.name)
		}
		if row.Past != nil {
			places = append(places, "done")
		}
		if len(places)+len(row.Damaged) > 0 {
			list = append(list, foundIn{row.Queue, row.Shard.String(), strings.Join(places, ", ")})
		}
	}
	return list
}
