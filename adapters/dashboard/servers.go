package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/skeinq/skein/inspect"
)

// nodesBody is the list of servers.
type nodesBody struct {
	Now      time.Time
	Rows     []nodeRow
	Versions int
	Unknown  bool
	May      *rights
}

// nodeRow is a server.
type nodeRow struct {
	*inspect.Node
	State, Class, Sign string
	Odd                bool // another version than most servers have
	Longest            time.Duration
	// Silent is when it will count as gone, or went.
	Started, Silent when
	Gone            bool
}

// nodesPage lists the servers.
func (c *call) nodesPage() (*view, error) {
	s, err := c.seen()
	if err != nil {
		return nil, err
	}

	b := &nodesBody{Now: s.view.Now, Unknown: s.view.NodesUnknown, May: c.may()}

	versions := map[string]int{}
	for at := range s.view.Nodes {
		n := &s.view.Nodes[at]
		b.Rows = append(b.Rows, nodeRowOf(n, b.Now))
		if n.State != inspect.NodeGone {
			versions[n.Version]++
		}
	}
	b.Versions = len(versions)

	most := ""
	for version, n := range versions {
		if n > versions[most] || n == versions[most] && version > most {
			most = version
		}
	}
	for at := range b.Rows {
		b.Rows[at].Odd = !b.Rows[at].Gone && b.Rows[at].Version != most
	}

	slices.SortStableFunc(b.Rows, func(x, y nodeRow) int {
		return cmp.Or(
			cmp.Compare(rank(x.State), rank(y.State)),
			cmp.Compare(x.Name, y.Name),
			cmp.Compare(x.Owner, y.Owner),
		)
	})
	return &view{page: "nodes", title: "Servers", live: true, body: b}, nil
}

func rank(state string) int {
	return slices.Index([]string{
		inspect.NodeAlive.String(), inspect.NodeDraining.String(), inspect.NodeGone.String(),
	}, state)
}

func nodeRowOf(n *inspect.Node, now time.Time) nodeRow {
	r := nodeRow{
		Node:    n,
		State:   n.State.String(),
		Started: when{n.StartedAt, now},
		Silent:  when{n.ExpiresAt, now},
		Gone:    n.State == inspect.NodeGone,
	}

	switch n.State {
	case inspect.NodeDraining:
		r.Class, r.Sign = "paused", "‖"
	case inspect.NodeGone:
		r.Class, r.Sign = "nobody", "▨"
	}

	for _, j := range n.Status.Longest {
		r.Longest = max(r.Longest, now.Sub(j.Began.Time()))
	}
	return r
}

// storeBody is how the store is.
type storeBody struct {
	Now       time.Time
	Silence   string
	Unreached []string
	Checks    []checkRow
	Why       string
}

type checkRow struct {
	inspect.Check
	Class, Sign string
}

// storePage shows the checks of the store, worst first.
func (c *call) storePage() (*view, error) {
	s, err := c.look()
	if err != nil {
		return nil, err
	}

	b := &storeBody{Now: s.view.Now, Silence: s.view.Silence}
	if s.checksFailed != nil {
		b.Why = c.errorText("", "", s.checksFailed.Error())
	}
	for _, sh := range s.view.Unreached {
		b.Unreached = append(b.Unreached, sh.String())
	}

	checks := slices.Clone(s.view.Checks)
	slices.SortStableFunc(checks, func(x, y inspect.Check) int { return cmp.Compare(y.Status, x.Status) })
	for _, k := range checks {
		row := checkRow{k, "good", "✓"}
		switch k.Status {
		case inspect.CheckFail:
			row.Class, row.Sign = "bad", "●"
		case inspect.CheckWarn:
			row.Class, row.Sign = "late", "▲"
		case inspect.CheckUnknown:
			row.Class, row.Sign = "nobody", "?"
		}
		b.Checks = append(b.Checks, row)
	}

	return &view{page: "store", title: "Store", live: true, body: b}, nil
}
