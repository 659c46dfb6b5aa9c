package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/ports"
)

// mismatchError is the error of a declaration whose shard count differs from the queue's.
type mismatchError struct {
	queue string
	err   error
	// servers are those that serve the queue, or "" if no server does or that is not known.
	servers string
}

// resharding is the page that describes how to change a shard count.
const resharding = "https://github.com/skeinq/skein/blob/main/docs/guide/resharding.md"

// Error implements error.
func (e *mismatchError) Error() string {
	text := fmt.Sprintf("declare queue %q: %v", e.queue, e.err)
	if e.servers != "" {
		text += "; it is served by " + e.servers
	}
	return text + "; to change it, see " + resharding
}

// Unwrap returns the store's error.
func (e *mismatchError) Unwrap() error { return e.err }

// DeclareError wraps the error of a declaration, and names the page that describes the change, if
// there is one.
func DeclareError(queue string, err error) error {
	if errors.Is(err, ports.ErrShardCountMismatch) {
		return &mismatchError{queue: queue, err: err}
	}
	return fmt.Errorf("declare queue %q: %w", queue, err)
}

// nameServers adds to the error of a declaration with another shard count which servers serve the
// queue, so that the reader learns whose configuration differs. It returns other errors unchanged,
// and also a mismatch about which the store has no more information.
func (n *node) nameServers(err error) error {
	var mismatch *mismatchError
	if !errors.As(err, &mismatch) {
		return err
	}
	ctx, cancel := n.callContext()
	defer cancel()
	reply, failed := n.store.Nodes(ctx)
	if failed != nil {
		return err
	}
	var names []string
	for i := range reply.Nodes {
		if other := &reply.Nodes[i]; other.State(reply.Now) != ports.NodeGone && slices.Contains(other.Queues, mismatch.queue) {
			names = append(names, nodeName(other))
		}
	}
	if more := len(names) - mostNames; more > 0 {
		names = append(names[:mostNames], fmt.Sprintf("%d more", more))
	}
	return &mismatchError{queue: mismatch.queue, err: mismatch.err, servers: strings.Join(names, ", ")}
}

// mostNames is how many servers an error names at most.
const mostNames = 5

// nodeName is a node's name for people.
func nodeName(n *ports.Node) string {
	if n.Version == "" {
		return fmt.Sprintf("%s (host %s, pid %d)", n.Name, n.Host, n.PID)
	}
	return fmt.Sprintf("%s (host %s, pid %d, version %s)", n.Name, n.Host, n.PID, n.Version)
}
