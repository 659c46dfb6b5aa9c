package dashboard

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func TestRecentDeathsOfSpans(t *testing.T) {
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		spans   []span
		others  bool
		letters map[string]int
		open    bool
		byGroup map[string]int64
		sum     wrong.Deaths
	}{
		"none": {byGroup: map[string]int64{}},
		"all, no longer, and not yet": {
			spans:   []span{{"new", 7, at(0), at(5)}, {"newer", 2, at(3), at(9)}, {"old", 9, at(-9), at(-1)}},
			byGroup: map[string]int64{"new": 7, "newer": 2}, sum: wrong.Deaths{Count: 9, First: at(0), Last: at(9)},
		},
		"a part": {
			spans:   []span{{"new", 2, at(4), at(5)}, {"mixed", 9, at(-9), at(8)}},
			letters: map[string]int{"new": 5, "mixed": 3},
			open:    true,
			byGroup: map[string]int64{"new": 2, "mixed": 1}, sum: wrong.Deaths{Count: 3, First: at(3), Last: at(5)},
		},
		"of the last moment": {spans: []span{{"old", 2, at(-1), at(0)}}, open: true, byGroup: map[string]int64{}},
		"others": {
			spans:   []span{{"old", 2, at(-9), at(-1)}},
			others:  true,
			letters: map[string]int{"old": 1, "else": 2, "before": -1},
			open:    true,
			byGroup: map[string]int64{"else": 1},
			sum:     wrong.Deaths{Count: 1, First: at(2), Last: at(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := recentOf(at(0), c.spans, c.others)
			for group, minute := range c.letters {
				if old := r.letter(group, at(minute)); old != (minute < 0) {
					t.Errorf("a dead letter of minute %d is old: %v", minute, old)
				}
			}
			if r.open != c.open || !maps.Equal(r.byGroup, c.byGroup) || r.sum != c.sum {
				t.Errorf("open %v, %v, %+v", r.open, r.byGroup, r.sum)
			}
		})
	}
}

// The number of recent deaths is taken from groups as far as they are enough. Dead letters are
// read only for the rest, and only as many as necessary.
func TestDeathsAreReadOnlyWhereGroupsDoNotTell(t *testing.T) {
	for name, c := range map[string]struct {
		old, late, fresh int
		groups           func(*ports.GroupsReply)
		lists            int
		says             string
	}{
		"old ones alone":       {old: 3, lists: 0},
		"a new group":          {fresh: 1200, old: 3, lists: 0, says: "1,200 died within the last hour"},
		"few of an old group":  {old: 200, late: 2, lists: 1, says: "2 died within the last hour"},
		"more of an old group": {old: 1, late: 120, lists: 2, says: "120 died within the last hour"},
		"too many":             {old: 1, late: 1100, lists: 3, says: "1,000 or more died within the last hour"},
		"a group that is hidden": {
			old:    1,
			fresh:  4,
			lists:  1,
			says:   "4 died within the last hour",
			groups: func(r *ports.GroupsReply) { r.Groups, r.Total, r.Dead = r.Groups[:1], 1, 1 },
		},
		"too many groups": {
			old:    9,
			fresh:  4,
			lists:  1,
			says:   "4 died within the last hour",
			groups: func(r *ports.GroupsReply) { r.Groups = r.Groups[:1] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, Options{})
				h.buried("old", c.old)
				h.advance(2 * time.Hour)
				h.turns = map[core.Shard]*ports.TurnRequest{}
				h.buried("old", c.late)
				h.buried("fresh", c.fresh)
				h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}})
				h.store.groups = c.groups
				page := h.get("/")
				if c.says == "" {
					saysNot(t, page, "buried within")
				} else {
					says(t, page, "orders "+c.says)
				}
				if h.store.lists != c.lists {
					t.Errorf("%d lists were read, want %d", h.store.lists, c.lists)
				}
			})
		})
	}
}

// Counts that are incomplete because a part could not be read are not shown as if they were
// complete.
func TestTheMorgueSaysWhatItCouldNotCount(t *testing.T) {
	h := newHouse(t, Options{})
	h.buried("old", 60)
	h.advance(25 * time.Hour)
	h.turns = map[core.Shard]*ports.TurnRequest{}
	h.buried("old", 70)
	lists, fails := 0, false
	board := h.over(func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if call.Method == "Morgue" {
			if lists++; fails && lists > 1 {
				return errors.New("refused by the test")
			}
		}
		return next(ctx)
	}, Options{})
	page := func() string {
		lists = 0
		return answerOf(board, request(http.MethodGet, "/morgue?q=orders", nil)).Body.String()
	}
	page() // takes the snapshot
	fails, board.looker.newest = true, nil
	says(t, page(), "old 50 50 130",
		"The counts for the last hour and day may be too low, because the newest dead letters can't be read:",
		"refused by the test")
	fails = false
	after := page()
	says(t, after, "old 70 70 130")
	saysNot(t, after, "may be more")
}

// A count during an action may be out of date: the next page counts anew.
func TestACountDuringAnActionIsNotKept(t *testing.T) {
	h := newHouse(t, Options{})
	h.buried("old", 60)
	h.advance(25 * time.Hour)
	h.turns = map[core.Shard]*ports.TurnRequest{}
	h.buried("old", 3)
	lists := 0
	var board *Dashboard
	acts := func() {}
	board = h.over(func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		err := next(ctx)
		if call.Method == "Morgue" {
			lists++
			acts()
		}
		return err
	}, Options{})
	count := func() int {
		lists = 0
		answerOf(board, request(http.MethodGet, "/morgue?q=orders&sort=id", nil))
		return lists
	}
	count() // takes the snapshot
	board.looker.acted()
	count()
	if n := count(); n != 1 {
		t.Fatalf("a page whose counts are known reads %d lists", n)
	}
	board.looker.acted()
	acts = board.looker.acted
	during := count()
	acts = func() {}
	if n := count(); during < 2 || n < 2 {
		t.Errorf("during an action %d lists are read, and %d after it", during, n)
	}
}

// buried buries jobs of orders for a group of errors.
func (h *house) buried(group string, n int) {
	h.t.Helper()
	for _, id := range numbered(group+h.now.Format("15"), n) {
		h.push("orders", id, 0, "p")
	}
	for index := range houseShards {
		for claims := h.turn("orders", index, core.MaxTurnJobs); len(claims) > 0; claims = h.turn(
			"orders", index, core.MaxTurnJobs,
		) {
			var settle []core.Settlement
			for at := range claims {
				settle = append(settle, core.RetryPolicy{}.Settlement(&claims[at],
					&core.Outcome{Kind: core.Buried, Error: group, Group: group}, 0))
			}
			h.turn("orders", index, 0, settle...)
		}
	}
}

// The page of the morgue counts hours and days by groups, and else by the dead letters that it
// lists anyway, as far as these go back.
func TestTheMorgueReadsWhatGroupsDoNotTell(t *testing.T) {
	hide := func(r *ports.GroupsReply) { r.Groups = r.Groups[:1] }
	for name, c := range map[string]struct {
		old, today, late int
		groups           func(*ports.GroupsReply)
		target           string
		lists            int
		says             []string
	}{
		"old ones alone":           {old: 60, lists: 1, says: []string{"all 0 0 60", "old 0 0 60"}},
		"old ones, listed by id":   {old: 60, target: "&sort=id", lists: 1, says: []string{"old 0 0 60"}},
		"few new ones":             {old: 60, late: 3, lists: 1, says: []string{"all 3 3 63", "old 3 3 63"}},
		"few new ones, all listed": {old: 6, late: 3, lists: 1, says: []string{"all 3 3 9", "old 3 3 9"}},
		"few, listed by id":        {old: 60, late: 3, target: "&sort=id&desc=1", lists: 2, says: []string{"old 3 3 63"}},
		"few, listed upwards":      {old: 60, late: 3, target: "&asc=1", lists: 2, says: []string{"old 3 3 63"}},
		"few, listed from a time":  {old: 60, late: 3, target: "&from=2030-01-02T03:04:00Z", lists: 2, says: []string{"old 3 3 63"}},
		"few, listed by group":     {old: 60, late: 3, target: "&group=old", lists: 2, says: []string{"old 3 3 63"}},
		"few, listed further on":   {old: 60, late: 3, target: "next", lists: 2, says: []string{"old 3 3 63"}},
		"of today":                 {today: 90, late: 3, lists: 1, says: []string{"today 3 93 93"}},
		"many groups":              {old: 60, today: 2, lists: 1, says: []string{"all 0 2 62", "old 0 0 60", "and 1 smaller groups"}, groups: hide},
		"very many": {old: 1, late: 1100, lists: 2, says: []string{
			"old 950 950 1,101", "The counts for the last hour and day cover the newest 950 dead letters.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, Options{})
				later := func(d time.Duration) {
					h.advance(d)
					h.turns = map[core.Shard]*ports.TurnRequest{} // leases are over
				}
				h.buried("old", c.old)
				later(23 * time.Hour)
				h.buried("today", c.today)
				later(2 * time.Hour)
				h.buried(map[bool]string{true: "today", false: "old"}[c.old == 0], c.late)
				h.store.groups = c.groups
				target := "/morgue?q=orders" + c.target
				if page := h.get("/morgue?q=orders"); c.target == "next" {
					target = link(t, page, "next")
				}
				h.board.looker.newest = nil
				before := h.store.lists
				w := answerOf(h.board, request(http.MethodGet, target, nil))
				says(t, w.Body.String(), c.says...)
				if n := h.store.lists - before; n != c.lists {
					t.Errorf("%d lists were read, want %d", n, c.lists)
				}
			})
		})
	}
}
