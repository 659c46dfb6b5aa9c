package integration_test

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/skeinq/skein/internal/integration/kit"
)

// apiRoutes are the requests by which a page or an operator reads over HTTP.
var apiRoutes = []string{
	"stats", "queues", "queues/orders", "queues/orders/history", "queues/orders/jobs", "queues/orders/jobs?sort=id&desc=true",
	"queues/orders/jobs?sort=retrying", "queues/orders/jobs?sort=retries&desc=true", "queues/orders/jobs?shard=1&payloads=3",
	"queues/orders/claimed", "queues/orders/morgue", "queues/orders/morgue?sort=id", "queues/orders/groups", "queues/orders/quarantine",
	"find?queue=orders&id=order-0000007", "find?id=order-0000007", "why?queue=orders&id=order-0000007", "nodes", "checks",
}

// routes times each of apiRoutes.
func (m *measured) routes(what string) {
	m.T.Helper()
	server := kit.ServeAPI(m.T, m.Store)
	for _, route := range apiRoutes {
		m.time(what+route, func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/"+route, nil)
			if err != nil {
				return err
			}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(reply.Body)
			if err == nil && reply.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", reply.Status, text)
			}
			return err
		})
	}
}

// routesAtWork times apiRoutes while a server works the queue and a client pushes to it.
func (m *measured) routesAtWork() {
	m.T.Helper()
	w := kit.StartOwnWork(m.T, m.Orders)
	m.routes("at work: ")
	w.End(m.T)
}
