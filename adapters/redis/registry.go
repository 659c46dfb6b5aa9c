package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// nodeRecord is what a node announces of itself, as it is stored.
type nodeRecord struct {
	Name   string   `json:"name"`
	Host   string   `json:"host"`
	PID    int      `json:"pid"`
	Lanes  int      `json:"lanes"`
	Queues []string `json:"queues"`
}

// Announce implements [ports.Registry].
func (s *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}
	n := r.Node
	text, err := json.Marshal(nodeRecord{n.Name, n.Host, n.PID, n.Lanes, n.Queues})
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	value, err := s.run(ctx, call{
		script: announceScript,
		keys:   []any{s.nodesKey()},
		args:   []any{s.now(), n.Owner, r.TTL.Microseconds(), text},
	})
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	now, nodes, err := parseNodes(value)
	return ports.AnnounceReply{Now: now, Nodes: nodes}, err
}

// Retire implements [ports.Registry].
func (s *Store) Retire(ctx context.Context, owner string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err, ended := await(ctx, s.workers, func() error { return translate(s.client.HDel(ctx, s.nodesKey(), owner).Err()) })
	return cmp.Or(err, ended)
}

// Nodes implements [ports.Registry].
func (s *Store) Nodes(ctx context.Context) ([]ports.Node, error) {
	_, nodes, err := s.nodes(ctx)
	return nodes, err
}

// nodes returns the store's time and the nodes that run.
func (s *Store) nodes(ctx context.Context) (core.Instant, []ports.Node, error) {
	value, err := s.run(ctx, call{script: nodesScript, keys: []any{s.nodesKey()}, args: []any{s.now()}})
	if err != nil {
		return 0, nil, err
	}
	return parseNodes(value)
}

// parseNodes reads the clock and all known nodes, and keeps those that run.
func parseNodes(value any) (core.Instant, []ports.Node, error) {
	r := replyOf(value)
	now, list := core.Instant(r.int()), r.list()
	var nodes []ports.Node
	for list.more() {
		n, err := parseNode(list.text(), list.text())
		if err != nil {
			return 0, nil, err
		}
		if now < n.ExpiresAt {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b ports.Node) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner))
	})
	r.bad = r.bad || list.bad
	return now, nodes, r.err()
}

// parseNode reads "started expires node".
func parseNode(owner, text string) (ports.Node, error) {
	started, text, _ := strings.Cut(text, " ")
	expires, text, _ := strings.Cut(text, " ")
	from, err1 := strconv.ParseInt(started, 10, 64)
	till, err2 := strconv.ParseInt(expires, 10, 64)
	var a nodeRecord
	if err3 := json.Unmarshal([]byte(text), &a); err1 != nil || err2 != nil || err3 != nil {
		return ports.Node{}, errStored
	}
	return ports.Node{
		Owner: owner, Name: a.Name, Host: a.Host, PID: a.PID, Lanes: a.Lanes, Queues: a.Queues,
		StartedAt: core.Instant(from), ExpiresAt: core.Instant(till),
	}, nil
}
