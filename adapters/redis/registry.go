package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// nodeRecord is a node's stored announcement. Other nodes are notified when it changes.
type nodeRecord struct {
	Name     string   `json:"name"`
	Host     string   `json:"host"`
	PID      int      `json:"pid"`
	Lanes    int      `json:"lanes"`
	Queues   []string `json:"queues"`
	Version  string   `json:"version"`
	Draining bool     `json:"draining"`
}

// Announce implements [ports.Registry].
func (s *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}

	n := &r.Node
	text, err := json.Marshal(nodeRecord{n.Name, n.Host, n.PID, n.Lanes, n.Queues, n.Version, n.Draining})
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	status, err := storekit.EncodeNodeStatus(&n.Status)
	if err != nil {
		return ports.AnnounceReply{}, err
	}

	value, err := s.run(ctx, exchange.Call{
		Script: announceScript,
		Keys:   []any{s.nodesKey(), s.statusKey()},
		Args:   []any{s.now(), n.Owner, r.TTL.Microseconds(), text, status, s.channel(core.Shard{})},
	})
	if err != nil {
		return ports.AnnounceReply{}, err
	}

	reply := record.ReplyOf(value)
	now, list := core.Instant(reply.Int()), reply.List()
	nodes, err := parseNodes(&list)
	return ports.AnnounceReply{Now: now, Nodes: nodes}, cmp.Or(reply.Err(), err)
}

// Retire implements [ports.Registry].
func (s *Store) Retire(ctx context.Context, owner string) error {
	_, err := s.run(ctx, exchange.Call{
		Script: retireScript,
		Keys:   []any{s.nodesKey(), s.statusKey()},
		Args:   []any{owner, s.channel(core.Shard{})},
	})
	return err
}

// DrainNode implements [ports.Registry].
func (s *Store) DrainNode(ctx context.Context, owner string, drain bool) error {
	value, err := s.run(ctx, exchange.Call{
		Script: drainScript,
		Keys:   []any{s.nodesKey()},
		Args:   []any{s.now(), owner, boolArg(drain), s.channel(core.Shard{})},
	})
	if err != nil {
		return err
	}
	reply := record.ReplyOf(value)
	if reply.Text() == "unknown" {
		return storekit.UnknownNode(owner)
	}
	return reply.Err()
}

// Nodes implements [ports.Registry].
func (s *Store) Nodes(ctx context.Context) (ports.NodesReply, error) {
	value, err := s.run(ctx, exchange.Call{
		Script: nodesScript,
		Keys:   []any{s.nodesKey(), s.statusKey()},
		Args:   []any{s.now()},
	})
	if err != nil {
		return ports.NodesReply{}, err
	}

	reply := record.ReplyOf(value)
	now, list, statuses := core.Instant(reply.Int()), reply.List(), reply.List()
	nodes, err := parseNodes(&list)
	if err = cmp.Or(reply.Err(), err); err != nil {
		return ports.NodesReply{}, err
	}

	doing, err := parseStatuses(&statuses)
	for i := range nodes {
		nodes[i].Status = doing[nodes[i].Owner]
	}
	nodes = slices.DeleteFunc(nodes, func(n ports.Node) bool { return n.ExpiresAt.Add(ports.NodeKept) < now })
	return ports.NodesReply{Now: now, Nodes: nodes}, err
}

// parseNodes reads pairs of owner and value, and returns the nodes in the port's order. A node
// that can't be read is left out: a running node announces itself anew, and the next announcement
// removes the others.
func parseNodes(list *record.Reply) ([]ports.Node, error) {
	var nodes []ports.Node
	for list.More() {
		if n, err := parseNode(list.Text(), list.Text()); err == nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b ports.Node) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner))
	})
	return nodes, list.Err()
}

// parseNode reads "started expires ttl asked node".
func parseNode(owner, text string) (ports.Node, error) {
	started, text, _ := strings.Cut(text, " ")
	expires, text, _ := strings.Cut(text, " ")
	_, text, _ = strings.Cut(text, " ")
	asked, text, _ := strings.Cut(text, " ")

	from, err1 := strconv.ParseInt(started, 10, 64)
	till, err2 := strconv.ParseInt(expires, 10, 64)
	var a nodeRecord
	if err3 := json.Unmarshal([]byte(text), &a); err1 != nil || err2 != nil || err3 != nil {
		return ports.Node{}, record.ErrStored
	}

	return ports.Node{
		Owner:     owner,
		Name:      a.Name,
		Host:      a.Host,
		PID:       a.PID,
		Lanes:     a.Lanes,
		Queues:    a.Queues,
		Version:   a.Version,
		Draining:  a.Draining || asked == "1",
		StartedAt: core.Instant(from),
		ExpiresAt: core.Instant(till),
	}, nil
}

// parseStatuses reads pairs of owner and status, without those that can't be read.
func parseStatuses(list *record.Reply) (map[string]ports.NodeStatus, error) {
	statuses := make(map[string]ports.NodeStatus)
	for list.More() {
		owner := list.Text()
		if status, err := storekit.DecodeNodeStatus(list.Text()); err == nil {
			statuses[owner] = status
		}
	}
	return statuses, list.Err()
}
