package prometheus

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/core"
)

// invalidQueue stands for names that no queue can have, such as a push may be given: they are refused, and make no series each.
const invalidQueue = "(invalid)"

// queueSeries are the series of a queue, found once, so that an event costs no look-up by labels.
type queueSeries struct {
	pushes, met  map[string]prometheus.Counter
	pushDuration prometheus.Observer
	jobs         *jobSeries
	vectors      *vectors
	name         string
	// shards has a *jobSeries by index, with PerShard.
	shards sync.Map
}

// jobSeries are those of a queue, or with PerShard of a shard, that its jobs count in.
type jobSeries struct {
	started, payloads, buried, recovered prometheus.Counter
	outcomes, overruns                   map[string]prometheus.Counter
	payloadsEach, wait, ok, failed       prometheus.Observer
}

func newQueueSeries(v *vectors, name string) *queueSeries {
	labels := []string{name}
	q := &queueSeries{
		pushes: v.counted("skein_pushes_total", labels, nil), met: v.counted("skein_pushed_total", labels, nil),
		pushDuration: v.histogram("skein_push_duration_seconds", name), vectors: v, name: name,
	}
	if !v.perShard {
		q.jobs = newJobSeries(v, name, nil)
	}
	return q
}

func newJobSeries(v *vectors, queue string, shard []string) *jobSeries {
	labels := append([]string{queue}, shard...)
	return &jobSeries{
		started: v.counter("skein_jobs_started_total", labels...), payloads: v.counter("skein_payloads_total", labels...),
		buried: v.counter("skein_payloads_buried_total", labels...), recovered: v.counter("skein_recovered_jobs_total", labels...),
		outcomes:     v.counted("skein_jobs_total", []string{queue}, shard),
		overruns:     v.counted("skein_handler_overrun_total", []string{queue}, shard),
		payloadsEach: v.histogram("skein_job_payloads", labels...), wait: v.histogram("skein_job_wait_seconds", labels...),
		ok:     v.histogram("skein_job_duration_seconds", append([]string{queue, "ok"}, shard...)...),
		failed: v.histogram("skein_job_duration_seconds", append([]string{queue, "error"}, shard...)...),
	}
}

// ofShard returns the series that the jobs of a shard count in.
func (q *queueSeries) ofShard(index int) *jobSeries {
	if q.jobs != nil {
		return q.jobs
	}
	if known, ok := q.shards.Load(index); ok {
		return known.(*jobSeries)
	}
	made, _ := q.shards.LoadOrStore(index, newJobSeries(q.vectors, q.name, []string{strconv.Itoa(index)}))
	return made.(*jobSeries)
}

// queue returns the series of a queue, which are made when it is first seen.
func (m *Metrics) queue(name string) *queueSeries {
	if q := (*m.queues.Load())[name]; q != nil {
		return q
	}
	if core.ValidateQueue(name, 1) != nil {
		name = invalidQueue
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.queues.Load()
	if q := known[name]; q != nil {
		return q
	}
	q := newQueueSeries(m.vectors, name)
	more := map[string]*queueSeries{name: q}
	for other, series := range known {
		more[other] = series
	}
	m.queues.Store(&more)
	return q
}

// jobsOf returns the series of a shard's jobs.
func (m *Metrics) jobsOf(shard core.Shard) *jobSeries {
	return m.queue(shard.Queue).ofShard(shard.Index)
}
