package exchange

import (
	"context"
	"errors"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Reload has the client ask a Cluster again, in the background and at most every 200 ms, which
// server has which slots.
func (s *Link) Reload(ctx context.Context) {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// NoteMoves has the client read the slot map again if a call did not reach its server, or found
// that a slot has moved. By itself the client reads the map once a minute, and when it repeats a
// call. Calls that are sent once would fail until then after a failover.
func (s *Link) NoteMoves(ctx context.Context, err error) {
	if err != nil && (Broken(err) || goredis.HasErrorPrefix(err, "MOVED")) {
		s.Reload(ctx)
	}
}

// Broken reports whether an error is no reply of a server, such as a failed dial.
func Broken(err error) bool {
	var reply goredis.Error
	return !errors.Is(err, goredis.Nil) && !errors.As(err, &reply)
}

// How long a call waits for the map of a Cluster when its server could not be dialled, and how
// often it checks.
const (
	mapPatience = 100 * time.Millisecond
	mapLook     = 5 * time.Millisecond
)

// errMoved is the outcome of a call that was not sent because its server could not be dialled, if
// another server has its slot by now.
var errMoved = replyError("MOVED to a server that has taken another's place")

// replyError is the text of a server's error, also of one that locate has changed.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError implements goredis.Error.
func (replyError) RedisError() {}

// serversFor returns the server of a Cluster that each call goes to. It is nil where that is not
// known, or without a Cluster.
func (s *Link) serversFor(ctx context.Context, calls []Call) []goredis.UniversalClient {
	if _, cluster := s.client.(*goredis.ClusterClient); !cluster {
		return nil
	}
	servers := make([]goredis.UniversalClient, len(calls))
	for i := range calls {
		servers[i] = s.serverFor(ctx, &calls[i])
	}
	return servers
}

// serverFor returns the server of a Cluster that a call goes to, or nil if that is not known.
func (s *Link) serverFor(ctx context.Context, c *Call) goredis.UniversalClient {
	server, err := s.Master(ctx, c.Keys[0].(string))
	if err != nil {
		return nil
	}
	return server
}

// followMoves has the client read the slot map again if a call did not reach its server. A call
// that was not sent, and whose slot another server has by then, gets errMoved, which is repeated.
func (s *Link) followMoves(ctx context.Context, x *exchanging, open []int, outcomes []Outcome) {
	var unsent []int
	for _, i := range open {
		s.NoteMoves(ctx, outcomes[i].Err)
		if x.servers != nil && notDialled(outcomes[i].Err) {
			unsent = append(unsent, i)
		}
	}

	// The client reads the map in the background.
	for began := time.Now(); len(unsent) > 0 && time.Since(began) < mapPatience && sleep(ctx, mapLook); {
		moved := false
		for _, i := range unsent {
			if server := s.serverFor(ctx, &x.calls[i]); server != nil && server != x.servers[i] {
				outcomes[i].Err, x.servers[i], moved = errMoved, server, true
			}
		}
		if moved {
			return
		}
	}
}

// notDialled reports whether an error means that there was no connection to send a call on.
func notDialled(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}
