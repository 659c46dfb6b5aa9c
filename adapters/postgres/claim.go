package postgres

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// claimColumns returns the columns of the table claimed for a claim, except for its payloads.
func claimColumns(c *core.Claim) []column {
	return append(jobColumns(&c.Job),
		column{"token", "e.token", &c.Receipt.Token},
		column{"number", "e.number", &c.Receipt.Number},
	)
}

// claimedJob is a row of the table claimed as it is listed, with some of its payloads.
type claimedJob struct {
	ports.ClaimView
	shard int
	payloadLists
}

// claimLease joins the lease of a claim's shard.
const claimLease = `
JOIN {schema}.leases l ON l.shard = e.shard`

func (c *claimedJob) id() string { return c.ID }

func (c *claimedJob) columns() []column {
	return append(claimColumns(&c.Claim),
		column{"begun", "e.begun IS TRUE", &c.Begun},
		column{"shard", "e.shard", &c.shard},
		column{"since", "e.since", &c.Since},
		column{"node", "e.node", &c.Node},
		column{"owner", "e.owner", &c.Owner},
		column{"cancelled", "e.cancel_drop IS NOT NULL", &c.Cancelled},
		column{"cancel_drop", "e.cancel_drop IS TRUE", &c.Drop},
		column{"lease_until", `CASE
    WHEN l.held AND l.token = e.token AND {schema}.remaining(l.expires, l.ttl, {schema}.clock({now})) > 0
      THEN l.expires ELSE 0 END`, &c.LeaseUntil},
		column{"count", "least(1 + coalesce(cardinality(e.more_data), 0), {counted})", &c.Count},
		column{"scores", "(ARRAY[e.score] || e.more_scores)[1:$1::int]", &c.scores},
		column{"data", "(ARRAY[e.data] || e.more_data)[1:$1::int]", &c.data},
		column{"meta", "(ARRAY[e.meta] || e.more_meta)[1:$1::int]", &c.meta},
	)
}

func (c *claimedJob) finish(queue string, errorBytes int) (err error) {
	c.Failures = c.Failures.Short(errorBytes)
	c.LeaseOver = c.LeaseUntil == 0
	c.Shard = core.Shard{Queue: queue, Index: c.shard % core.MaxShards}
	c.Payloads, err = c.payloads()
	return err
}
