package postgres

import (
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/skeinq/skein/core"
)

// jobColumns returns the columns that the tables jobs and claimed have for a job, except for its
// payloads.
func jobColumns(j *core.Job) []column {
	return []column{
		{"id", "e.id", &j.ID},
		{"perform_at", "e.perform_at", &j.PerformAt},
		{"first_push", "e.first_push", &j.FirstPush},
		{"retry_count", "e.retry_count", &j.RetryCount},
		{"recoveries", "e.recoveries", &j.Recoveries},
		{"failures", "{failures}", scannedFailures{&j.Failures}},
		{"tags", "e.tags", &j.Tags},
		{"slot", "e.slot", (*zeronull.Text)(&j.Slot)},
	}
}

// importedJob is a job as JSON, with the names of the columns of the inbox. The slot of an imported
// job is dropped.
type importedJob struct {
	ID         string       `json:"id"`
	PerformAt  core.Instant `json:"perform_at"`
	FirstPush  core.Instant `json:"first_push"`
	RetryCount int          `json:"retry_count"`
	Recoveries int          `json:"recoveries"`
	Failures   []failure    `json:"failures"`
	Tags       core.Tags    `json:"tags"`
}

func newImportedJob(j *core.Job) importedJob {
	return importedJob{
		ID:         j.ID,
		PerformAt:  j.PerformAt,
		FirstPush:  j.FirstPush,
		RetryCount: j.RetryCount,
		Recoveries: j.Recoveries,
		Failures:   failuresOf(j.Failures),
		Tags:       j.Tags,
	}
}

// queuedJob is a row of the table jobs as it is read, with some of its payloads.
type queuedJob struct {
	core.Job
	count int
	payloadLists
}

// queuedPayloads joins the first payloads of a queued job that has several.
const queuedPayloads = `
LEFT JOIN LATERAL (
  SELECT array_agg(p.score) AS scores, array_agg(p.data) AS data, array_agg(p.meta) AS meta
  FROM {schema}.payloads_of(e.shard, e.id, $1) p
  WHERE e.has_more AND $1::int > 0
) m ON true`

func (q *queuedJob) id() string { return q.ID }

func (q *queuedJob) columns() []column {
	return append(jobColumns(&q.Job),
		column{"count", `CASE WHEN e.data IS NULL THEN 0 ELSE 1 END
    + CASE WHEN e.has_more THEN (
      SELECT count(*) FROM (
        SELECT FROM {schema}.payloads p WHERE p.shard = e.shard AND p.id = e.id LIMIT {counted}
      ) p
    ) ELSE 0 END`, &q.count},
		column{"scores", "CASE WHEN e.has_more THEN m.scores WHEN $1 > 0 THEN ARRAY[e.score] END", &q.scores},
		column{"data", "CASE WHEN e.has_more THEN m.data WHEN $1 > 0 THEN ARRAY[e.data] END", &q.data},
		column{"meta", "CASE WHEN e.has_more THEN m.meta WHEN $1 > 0 THEN ARRAY[e.meta] END", &q.meta},
	)
}

func (q *queuedJob) finish(_ string, errorBytes int) (err error) {
	q.Failures = q.Failures.Short(errorBytes)
	q.Payloads, err = q.payloads()
	return err
}
