package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// MismatchError is the error of a declaration whose shard count differs from the queue's.
type MismatchError struct {
	queue string
	err   error
	// servers are those that serve the queue, or "" if no server does or that is not known.
	servers string
}

// resharding is the page that describes how to change a shard count.
const resharding = "https://github.com/skeinq/skein/blob/main/docs/guide/resharding.md"

// Error implements error.
func (e *MismatchError) Error() string {
	text := fmt.Sprintf("declare queue %q: %v", e.queue, e.err)
	if e.servers != "" {
		text += "; it is served by " + e.servers
	}
	return text + "; to change it, see " + resharding
}

// Unwrap returns the store's error.
func (e *MismatchError) Unwrap() error { return e.err }

// DeclareError wraps the error of a declaration, and names the page that describes the change, if
// there is one.
func DeclareError(queue string, err error) error {
	if errors.Is(err, ports.ErrShardCountMismatch) {
		return &MismatchError{queue: queue, err: err}
	}
	return fmt.Errorf("declare queue %q: %w", queue, err)
}

// ServedBy returns the error with the names of those nodes that serve the queue at now, so that the
// reader learns whose configuration differs.
func (e *MismatchError) ServedBy(nodes []ports.Node, now core.Instant) error {
	var names []string
	for i := range nodes {
		if other := &nodes[i]; other.State(now) != ports.NodeGone && slices.Contains(other.Queues, e.queue) {
			names = append(names, NodeName(other))
		}
	}
	if more := len(names) - mostNames; more > 0 {
		names = append(names[:mostNames], fmt.Sprintf("%d more", more))
	}
	return &MismatchError{queue: e.queue, err: e.err, servers: strings.Join(names, ", ")}
}

// mostNames is how many servers an error names at most.
const mostNames = 5

// NodeName is a node's name for people.
func NodeName(n *ports.Node) string {
	if n.Version == "" {
		return fmt.Sprintf("%s (host %s, pid %d)", n.Name, n.Host, n.PID)
	}
	return fmt.Sprintf("%s (host %s, pid %d, version %s)", n.Name, n.Host, n.PID, n.Version)
}
