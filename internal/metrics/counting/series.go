package counting

import (
	"maps"
	"strconv"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
)

// InvalidQueue stands for all invalid names of queues. A push with such a name is refused, and its
// name gets no series of its own.
const InvalidQueue = "(invalid)"

// maker makes the series of metrics.
type maker struct {
	Series
	perShard bool
}

// counted returns a series for each value of one label of a metric. before and behind are the
// values of the labels before and behind that label.
func (v maker) counted(name string, before, behind []string) map[string]Counter {
	row, _ := metrics.Of(name)
	series := make(map[string]Counter)
	for _, value := range row.Labels[len(before)].Values {
		labels := append(append(append([]string(nil), before...), value), behind...)
		series[value] = v.Counter(name, labels...)
	}
	return series
}

// queueSeries are the series of a queue, found once, so that an event costs no look-up by labels.
type queueSeries struct {
	pushes, met  map[string]Counter
	pushDuration Measure
	jobs         *jobSeries
	maker        maker
	name         string
	// ticks returns the series of the queue's schedules. They are made with the first tick, since
	// most queues have no schedule.
	ticks func() *tickSeries
	// expired returns the series of dead letters that were removed. It is made with the first one,
	// since most queues keep all.
	expired func() Counter
	// rate returns the series of the queue's rate. They are made with the first take, since most
	// queues have no rate.
	rate func() *rateSeries
	// shards has a *jobSeries by index, if series are by shard.
	shards sync.Map
}

// jobSeries are the series in which the jobs of a queue count or, if series are by shard, the jobs
// of a shard.
type jobSeries struct {
	started, payloads, buried, recovered Counter
	outcomes, overruns                   map[string]Counter
	payloadsEach, wait, ok, failed       Measure
}

// tickSeries are the series of the schedules of a queue.
type tickSeries struct {
	outcomes map[string]Counter
	late     Measure
}

// rateSeries are the series of the rate of a queue.
type rateSeries struct {
	slots map[string]Counter
	stops Counter
}

func newQueueSeries(v maker, name string) *queueSeries {
	labels := []string{name}
	q := &queueSeries{
		pushes:       v.counted("skein_pushes_total", labels, nil),
		met:          v.counted("skein_pushed_total", labels, nil),
		pushDuration: v.Measure("skein_push_duration_seconds", name),
		maker:        v,
		name:         name,
	}

	q.ticks = sync.OnceValue(func() *tickSeries {
		return &tickSeries{v.counted("skein_ticks_total", labels, nil), v.Measure("skein_tick_late_seconds", name)}
	})
	q.expired = sync.OnceValue(func() Counter { return v.Counter("skein_dead_letters_expired_total", name) })
	q.rate = sync.OnceValue(func() *rateSeries {
		return &rateSeries{v.counted("skein_rate_slots_total", labels, nil), v.Counter("skein_rate_stops_total", name)}
	})
	if !v.perShard {
		q.jobs = newJobSeries(v, name, nil)
	}
	return q
}

func newJobSeries(v maker, queue string, shard []string) *jobSeries {
	labels := append([]string{queue}, shard...)
	return &jobSeries{
		started:      v.Counter("skein_jobs_started_total", labels...),
		payloads:     v.Counter("skein_payloads_total", labels...),
		buried:       v.Counter("skein_payloads_buried_total", labels...),
		recovered:    v.Counter("skein_recovered_jobs_total", labels...),
		outcomes:     v.counted("skein_jobs_total", []string{queue}, shard),
		overruns:     v.counted("skein_handler_overrun_total", []string{queue}, shard),
		payloadsEach: v.Measure("skein_job_payloads", labels...),
		wait:         v.Measure("skein_job_wait_seconds", labels...),
		ok:           v.Measure("skein_job_duration_seconds", append([]string{queue, "ok"}, shard...)...),
		failed:       v.Measure("skein_job_duration_seconds", append([]string{queue, "error"}, shard...)...),
	}
}

// ofShard returns the series in which the jobs of a shard count.
func (q *queueSeries) ofShard(index int) *jobSeries {
	if q.jobs != nil {
		return q.jobs
	}
	if known, ok := q.shards.Load(index); ok {
		return known.(*jobSeries)
	}
	made, _ := q.shards.LoadOrStore(index, newJobSeries(q.maker, q.name, []string{strconv.Itoa(index)}))
	return made.(*jobSeries)
}

// queue returns the series of a queue, which are made when it is first seen.
func (o *Observer) queue(name string) *queueSeries {
	if q := (*o.queues.Load())[name]; q != nil {
		return q
	}
	if core.ValidateQueue(name, 1) != nil {
		name = InvalidQueue
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	known := *o.queues.Load()
	if q := known[name]; q != nil {
		return q
	}

	// The map is copied, since events read it without the lock.
	q := newQueueSeries(o.maker, name)
	more := maps.Clone(known)
	more[name] = q
	o.queues.Store(&more)
	return q
}

// jobsOf returns the series of a shard's jobs.
func (o *Observer) jobsOf(shard core.Shard) *jobSeries {
	return o.queue(shard.Queue).ofShard(shard.Index)
}
