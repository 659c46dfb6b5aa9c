package postgres

import (
	"github.com/skeinq/skein/core"
)

// deadLetter is a row of the table dead_letters as it is read, with some of its payloads.
type deadLetter struct {
	core.DeadLetter
	count int
	payloadLists
}

// deadPayloads joins the first payloads of a dead letter.
const deadPayloads = `
LEFT JOIN LATERAL (
  SELECT array_agg(p.score) AS scores, array_agg(p.data) AS data, array_agg(p.meta) AS meta
  FROM {schema}.dead_payloads_of(e.shard, e.id, $1::int) p
) m ON true`

func (d *deadLetter) id() string { return d.ID }

func (d *deadLetter) columns() []column {
	return append([]column{
		{"id", "e.id", &d.ID},
		{"changed_at", "e.changed_at", &d.ChangedAt},
		{"failures", "{failures}", scannedFailures{&d.Failures}},
		{"tags", "e.tags", &d.Tags},
		{"grp", "e.grp", &d.Group},
		{"count", `(SELECT count(*) FROM (
    SELECT FROM {schema}.dead_letter_payloads p WHERE p.shard = e.shard AND p.id = e.id LIMIT {counted}
  ) p)`, &d.count},
	}, d.payloadLists.columns()...)
}

func (d *deadLetter) finish(_ string, errorBytes int) (err error) {
	d.Failures = d.Failures.Short(errorBytes)
	d.Payloads, err = d.payloads()
	return err
}

// letter is a dead letter as JSON, with the names of the columns of dead_letters. A settlement has
// only its failures and its group.
type letter struct {
	ID        string       `json:"id"`
	ChangedAt core.Instant `json:"changed_at"`
	Failures  []failure    `json:"failures"`
	Tags      core.Tags    `json:"tags"`
	Group     string       `json:"grp"`
}

func newLetter(d *core.DeadLetter) letter {
	return letter{ID: d.ID, ChangedAt: d.ChangedAt, Failures: failuresOf(d.Failures), Tags: d.Tags, Group: d.Group}
}
