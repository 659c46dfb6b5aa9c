package service

import (
	"fmt"
	"net/http"
	"time"

	"github.com/skeinq/skein/inspect"
)

// GroupsQuery bounds a list of groups.
type GroupsQuery struct {
	Limit int `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of groups, the largest first"`
}

// GroupRow is a group of dead letters.
type GroupRow struct {
	Key string `json:"group" class:"group" wide:"true" doc:"the value of group in lists and actions: a key, encrypted if errors are redacted"`
	inspect.Group
}

// GroupsReply has a queue's dead letters, counted by error.
type GroupsReply struct {
	Items     []Row[GroupRow] `json:"items" doc:"the groups, the largest first"`
	Total     int             `json:"total" doc:"the number of groups, also beyond the limit"`
	Dead      int64           `json:"dead" doc:"the number of dead letters of all groups"`
	Unreached []string        `json:"unreached,omitempty" doc:"shards that can't be reached now, whose dead letters are missing"`
	AsOf      time.Time       `json:"as_of,omitzero" doc:"the time of the figures, by the store's clock"`
}

// Rows returns the groups.
func (g *GroupsReply) Rows() any { return g.Items }

// Describe sets headers for the fields that formats without an envelope leave out.
func (g *GroupsReply) Describe(h http.Header) {
	(&List[GroupRow]{AsOf: g.AsOf, Unreached: g.Unreached}).Describe(h)
}

func (c *call) groups(q *GroupsQuery) (*GroupsReply, error) {
	groups, err := c.inspector.Groups(c.ctx, c.queue, q.Limit)
	unreached, err := c.partial(err)
	if err != nil {
		return nil, err
	}

	reply := &GroupsReply{
		Items:     []Row[GroupRow]{},
		Total:     groups.Total,
		Dead:      groups.Dead,
		Unreached: shardNames(unreached),
		AsOf:      groups.Now.UTC(),
	}
	v := view[GroupRow](c, 0)
	for _, g := range groups.Groups {
		reply.Items = append(reply.Items, v.Row(&GroupRow{g.Name, g}))
	}
	return reply, nil
}

// groupKey is the form in which a client names a group: its name. The name is made from an error's
// text, so it is encrypted where error texts are redacted.
func (s *Service) groupKey(name string) string {
	if s.o.RedactError == nil || name == "" {
		return name
	}
	return s.sealer.seal(name)
}

// group returns the name of the group that a client names.
func (s *Service) group(key string) (string, error) {
	if s.o.RedactError == nil || key == "" {
		return key, nil
	}
	name, err := s.sealer.open(key)
	if err != nil {
		return "", fmt.Errorf(
			"%w: there is no such group, or its name was made with another CursorKey",
			inspect.ErrInvalidOptions)
	}
	return name, nil
}
