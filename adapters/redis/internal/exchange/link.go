package exchange

import (
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Link sends calls to the servers of a client. It is safe for concurrent use. Make it with New.
type Link struct {
	client  goredis.UniversalClient
	Workers workerPool
	// large bounds the large pushes that may be under way to each server.
	large   largeShares
	cluster mastersList
	// connections finds those that have gone silent.
	connections *connections

	replicas    int
	waitTimeout time.Duration
}

// New returns a link whose durable calls wait for the given number of replicas.
func New(client goredis.UniversalClient, replicas int, waitTimeout time.Duration) *Link {
	return &Link{
		client:      client,
		Workers:     make(workerPool),
		connections: connectionsFor(client),
		replicas:    replicas,
		waitTimeout: waitTimeout,
	}
}

// OnCluster reports whether the client is that of a Cluster.
func (s *Link) OnCluster() bool {
	_, cluster := s.client.(*goredis.ClusterClient)
	return cluster
}
