package prometheus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/metrics"
)

// values are series by name and labels, in promtool's notation, with one value a minute
// for 70 minutes.
type values map[string]string

// well are the series of a shop in which no alert may fire. Two processes export the store.
func well() values {
	return values{
		`skein_queue_lag_seconds{queue="orders"}`:                   "1 2x70",
		`skein_queue_jobs{queue="orders",state="fresh"}`:            "5x70",
		`skein_queue_jobs{queue="orders",state="retry"}`:            "1x70",
		`skein_queue_jobs{queue="orders",state="orphaned"}`:         "0x70",
		`skein_queue_jobs{queue="orders",state="held"}`:             "0x70",
		`skein_queue_jobs{queue="orders",state="dead"}`:             "3x70",
		`skein_queue_jobs{queue="orders",state="quarantined"}`:      "0x70",
		`skein_queue_nodes{queue="orders"}`:                         "2x70",
		`skein_queue_processed_total{queue="orders"}`:               "0+600x70",
		`skein_queue_failed_total{queue="orders"}`:                  "0+6x70",
		`skein_queue_longest_run_seconds{queue="orders"}`:           "40x70",
		`skein_schedule_late_seconds{queue="orders"}`:               "0 1x70",
		`skein_ticks_total{queue="orders",outcome="fired"}`:         "0+1x70",
		`skein_ticks_total{queue="orders",outcome="skipped"}`:       "0+1x70",
		`skein_ticks_total{queue="orders",outcome="missed"}`:        "0x70",
		`skein_ticks_total{queue="orders",outcome="broken"}`:        "0x70",
		`skein_queue_paused{queue="orders"}`:                        "0x70",
		`skein_queue_shards{queue="orders",state="owned"}`:          "8x70",
		`skein_queue_shards{queue="orders",state="free"}`:           "0x70",
		`skein_queue_shards{queue="orders",state="expired"}`:        "0x70",
		`skein_queue_shard_lag_seconds{queue="orders",of="max"}`:    "2x70",
		`skein_queue_shard_lag_seconds{queue="orders",of="median"}`: "1x70",
		`skein_lease_changes_total{change="dropped"}`:               "0x70",
		`skein_recovered_jobs_total{queue="orders"}`:                "0x70",
		`skein_lanes{}`:      "8x70",
		`skein_lanes_busy{}`: "3x70",
		`skein_store_errors_total{call="turn",kind="unreachable"}`:    "0x70",
		`skein_store_errors_total{call="turn",kind="full"}`:           "0x70",
		`skein_pushes_total{queue="orders",result="stored"}`:          "0+60x70",
		`skein_pushes_total{queue="orders",result="refused"}`:         "0x70",
		`skein_pushes_total{queue="orders",result="unknown"}`:         "0x70",
		`skein_pushes_total{queue="orders",result="full"}`:            "0x70",
		`skein_store_check{check="memory"}`:                           "1x70",
		`skein_handler_overrun_total{queue="orders",cause="timeout"}`: "0x70",
		`skein_exporter_up{}`:                                         "1x70",
		`skein_exporter_age_seconds{}`:                                "5x70",
	}
}

// firing is a shop in which one alert fires and no other does.
type firing struct {
	alert string
	// series replace those of the shop that is well. An empty text removes a series.
	series values
	// The alert does not fire at pending, which is empty for an alert that waits for nothing, and
	// fires at fires.
	pending, fires string
	labels         map[string]string
	summary        string
}

// with returns series with those of others in their place.
func with(series values, others ...values) values {
	all := maps.Clone(series)
	for _, other := range others {
		maps.Copy(all, other)
	}
	return all
}

// ended are the series of a queue in which no job ends any more.
func ended(queue string) values {
	return values{
		fmt.Sprintf(`skein_queue_processed_total{queue=%q}`, queue): "7x70",
		fmt.Sprintf(`skein_queue_failed_total{queue=%q}`, queue):    "7x70",
	}
}

// lagging are the series of a queue with a shard that lags, a minute more each minute.
func lagging(queue string) values {
	return values{
		fmt.Sprintf(`skein_queue_lag_seconds{queue=%q}`, queue):                "0+60x70",
		fmt.Sprintf(`skein_queue_shard_lag_seconds{queue=%q,of="max"}`, queue): "0+60x70",
	}
}

// notServed are the series of a queue that no server serves, whose leases are over.
func notServed(queue string) values {
	return with(ended(queue), lagging(queue), values{
		fmt.Sprintf(`skein_queue_nodes{queue=%q}`, queue):                  "0x70",
		fmt.Sprintf(`skein_queue_shards{queue=%q,state="owned"}`, queue):   "0x70",
		fmt.Sprintf(`skein_queue_shards{queue=%q,state="expired"}`, queue): "8x70",
	})
}

// rateTooLow are the series of a queue of which more jobs are pushed than its rate allows to start.
func rateTooLow(queue string) values {
	return values{
		fmt.Sprintf(`skein_pushed_total{queue=%q,met="new"}`, queue):            "0+50x70",
		fmt.Sprintf(`skein_jobs_started_total{queue=%q}`, queue):                "0+10x70",
		fmt.Sprintf(`skein_rate_slots_total{queue=%q,result="granted"}`, queue): "0+10x70",
		fmt.Sprintf(`skein_rate_slots_total{queue=%q,result="delayed"}`, queue): "0+60x70",
		fmt.Sprintf(`skein_rate_wait_seconds{queue=%q}`, queue):                 "6x70",
	}
}

var ofOrders = map[string]string{"queue": "orders"}

var firings = []firing{
	{
		"SkeinQueueLag", values{`skein_queue_lag_seconds{queue="orders"}`: "0+60x70"},
		"10m", "11m", ofOrders, "Queue orders lags 11m 0s, and the lag grows.",
	},
	{ // a queue that lags by its rate: not SkeinQueueLag
		"SkeinRateTooLow", with(rateTooLow("orders"), values{`skein_queue_lag_seconds{queue="orders"}`: "0+60x70"}),
		"1h", "1h7m", ofOrders, "3000 jobs of queue orders were pushed in an hour, more than its rate allowed to start, " +
			"and its lag grows.",
	},
	{
		"SkeinNobodyServes", values{`skein_queue_nodes{queue="orders"}`: "0x70"},
		"1m", "2m", ofOrders, "6 jobs of queue orders wait, and no server serves it.",
	},
	{ // a queue without servers for a while, with all that follows
		"SkeinNobodyServes", notServed("orders"),
		"1m", "20m", ofOrders, "6 jobs of queue orders wait, and no server serves it.",
	},
	{ // the only server was lost with all jobs claimed
		"SkeinNobodyServes",
		with(notServed("orders"), values{
			`skein_queue_jobs{queue="orders",state="fresh"}`:    "0x70",
			`skein_queue_jobs{queue="orders",state="retry"}`:    "0x70",
			`skein_queue_jobs{queue="orders",state="claimed"}`:  "600x70",
			`skein_queue_jobs{queue="orders",state="orphaned"}`: "600x70",
		}),
		"1m", "20m", ofOrders, "600 jobs of queue orders wait, and no server serves it.",
	},
	{
		"SkeinNotMoving",
		values{
			`skein_queue_processed_total{queue="orders"}`: "7x70",
			`skein_queue_failed_total{queue="orders"}`:    "7x70",
		},
		"5m", "6m", ofOrders, "Queue orders lags 2s, and no job has ended for 5 minutes.",
	},
	{ // for a while, in one shard
		"SkeinNotMoving", with(ended("orders"), lagging("orders")),
		"5m", "20m", ofOrders, "Queue orders lags 20m 0s, and no job has ended for 5 minutes.",
	},
	{
		"SkeinFailureRatio",
		values{
			`skein_queue_processed_total{queue="orders"}`: "0+60x70",
			`skein_queue_failed_total{queue="orders"}`:    "0+20x70",
		},
		"", "10m", ofOrders, "25% of the jobs of queue orders fail.",
	},
	{
		"SkeinMorgueGrows", values{`skein_queue_jobs{queue="orders",state="dead"}`: "3+1x70"},
		"", "1h", ofOrders,
		"The morgue of queue orders has grown by 60 dead letters within an hour. Page at more than 100.",
	},
	{
		"SkeinJobsHeld", values{`skein_queue_jobs{queue="orders",state="held"}`: "0x4 2x65"},
		"4m", "5m", ofOrders, "2 jobs of queue orders are held after their last retry, and their ids wait.",
	},
	{
		"SkeinQuarantined", values{`skein_queue_jobs{queue="orders",state="quarantined"}`: "0x4 2x65"},
		"4m", "5m", ofOrders, "2 records of queue orders can't be read and were set aside.",
	},
	{
		"SkeinPausedLong",
		with(ended("orders"), lagging("orders"), values{`skein_queue_paused{queue="orders"}`: "1x70"}),
		"59m", "1h", ofOrders, "Queue orders has been paused for more than an hour.",
	},
	{ // and its servers were stopped
		"SkeinPausedLong", with(notServed("orders"), values{`skein_queue_paused{queue="orders"}`: "1x70"}),
		"59m", "1h", ofOrders, "Queue orders has been paused for more than an hour.",
	},
	{ // and some shards have no owner
		"SkeinPausedLong",
		values{
			`skein_queue_paused{queue="orders"}`:                 "1x70",
			`skein_queue_shards{queue="orders",state="free"}`:    "1x70",
			`skein_queue_shards{queue="orders",state="expired"}`: "2x70",
		},
		"59m", "1h", ofOrders, "Queue orders has been paused for more than an hour.",
	},
	{
		"SkeinShardsUnowned",
		values{
			`skein_queue_shards{queue="orders",state="free"}`:    "1x70",
			`skein_queue_shards{queue="orders",state="expired"}`: "2x70",
		},
		"0m", "1m", ofOrders, "3 shards of queue orders have no owner though servers run.",
	},
	{ // for a while, with all jobs in them
		"SkeinShardsUnowned",
		with(ended("orders"), lagging("orders"), values{`skein_queue_shards{queue="orders",state="expired"}`: "2x70"}),
		"0m", "20m", ofOrders, "2 shards of queue orders have no owner though servers run.",
	},
	{
		"SkeinHotShard", values{`skein_queue_shard_lag_seconds{queue="orders",of="max"}`: "90x70"},
		"4m", "5m", ofOrders, "A shard of queue orders lags 1m 30s, more than ten times the median.",
	},
	{ // and more and more
		"SkeinHotShard", lagging("orders"),
		"5m", "20m", ofOrders, "A shard of queue orders lags 20m 0s, more than ten times the median.",
	},
	{
		"SkeinLeaseLost", values{`skein_lease_changes_total{change="dropped"}`: "0+12x70"},
		"5m", "20m", nil, "Servers lose 0.20 leases a second.",
	},
	{
		"SkeinRecoveries", values{`skein_recovered_jobs_total{queue="orders"}`: "0+1x70"},
		"", "20m", ofOrders, "10 jobs of queue orders were recovered from servers that died.",
	},
	{
		"SkeinLanesExhausted", values{`skein_lanes_busy{}`: "8x70"},
		"9m", "10m", map[string]string{"instance": "a"}, "All lanes of a have been busy for 10 minutes, and jobs wait.",
	},
	{
		"SkeinStoreErrors", values{`skein_store_errors_total{call="turn",kind="unreachable"}`: "0+12x70"},
		"5m", "20m", map[string]string{"call": "turn", "kind": "unreachable"},
		"Calls to the store fail: turn, unreachable.",
	},
	{
		"SkeinStoreFull", values{`skein_pushes_total{queue="orders",result="full"}`: "0+1x70"},
		"", "5m", nil, "The store is full: pushes are refused.",
	},
	{
		"SkeinStoreFull", values{`skein_store_errors_total{call="turn",kind="full"}`: "0+60x70"},
		"", "20m", nil, "The store is full: pushes are refused.",
	},
	{ // none of a pusher's payloads is stored
		"SkeinPushesFail",
		values{
			`skein_pushes_total{queue="orders",result="stored"}`:  "0x70",
			`skein_pushes_total{queue="orders",result="refused"}`: "0+1x70",
		},
		"", "10m", ofOrders, "10 pushes to queue orders failed within 10 minutes, at least half of them.",
	},
	{ // and nothing was ever stored
		"SkeinPushesFail",
		values{
			`skein_pushes_total{queue="orders",result="stored"}`:  "",
			`skein_pushes_total{queue="orders",result="unknown"}`: "0+60x70",
		},
		"", "20m", ofOrders, "600 pushes to queue orders failed within 10 minutes, at least half of them.",
	},
	{
		"SkeinPushesRefused", values{`skein_pushes_total{queue="orders",result="refused"}`: "0+1x70"},
		"", "10m", map[string]string{"queue": "orders", "result": "refused"},
		"10 pushes to queue orders ended as refused within 10 minutes.",
	},
	{
		"SkeinCheckFailed", values{`skein_store_check{check="memory"}`: "3x70"},
		"0m", "1m", map[string]string{"check": "memory"},
		"The store's check memory fails: jobs may be lost, or no job runs.",
	},
	{ // and the exporter has ended
		"SkeinCheckFailed", values{`skein_store_check{check="memory"}`: "3x10"},
		"0m", "1h", map[string]string{"check": "memory"},
		"The store's check memory fails: jobs may be lost, or no job runs.",
	},
	{
		"SkeinCheckWarns", values{`skein_store_check{check="memory"}`: "2x70"},
		"4m", "5m", map[string]string{"check": "memory"}, "The store's check memory warns.",
	},
	{ // and the exporter has ended
		"SkeinCheckWarns", values{`skein_store_check{check="memory"}`: "2x10"},
		"4m", "1h", map[string]string{"check": "memory"}, "The store's check memory warns.",
	},
	{ // and the exporter has ended
		"SkeinJobsHeld", values{`skein_queue_jobs{queue="orders",state="held"}`: "2x10"},
		"", "1h", ofOrders, "2 jobs of queue orders are held after their last retry, and their ids wait.",
	},
	{
		"SkeinJobRunsLong", values{`skein_queue_longest_run_seconds{queue="orders"}`: "10+60x70"},
		"59m", "1h", ofOrders, "A handler of queue orders has run for 1h 0m 10s, and may hang.",
	},
	{
		"SkeinHandlerOverrun", values{`skein_handler_overrun_total{queue="orders",cause="timeout"}`: "0+1x70"},
		"", "5m", map[string]string{"queue": "orders", "cause": "timeout"},
		"Handlers of queue orders ignore the end of their context (timeout).",
	},
	{
		"SkeinTicksLate", values{`skein_schedule_late_seconds{queue="orders"}`: "0+60x70"},
		"6m", "7m", ofOrders, "A schedule of queue orders should have fired 7m 0s ago.",
	},
	{ // since no server serves its queue, in which no job waits
		"SkeinTicksLate",
		with(notServed("orders"), values{
			`skein_queue_jobs{queue="orders",state="fresh"}`:         "0x70",
			`skein_queue_jobs{queue="orders",state="retry"}`:         "0x70",
			`skein_queue_lag_seconds{queue="orders"}`:                "0x70",
			`skein_schedule_late_seconds{queue="orders"}`:            "0+60x70",
			`skein_queue_shard_lag_seconds{queue="orders",of="max"}`: "0x70",
		}),
		"6m", "7m", ofOrders, "A schedule of queue orders should have fired 7m 0s ago.",
	},
	{ // and jobs wait
		"SkeinNobodyServes",
		with(notServed("orders"), values{`skein_schedule_late_seconds{queue="orders"}`: "0+60x70"}),
		"1m", "20m", ofOrders, "6 jobs of queue orders wait, and no server serves it.",
	},
	{ // and its shard has no owner
		"SkeinShardsUnowned",
		values{
			`skein_queue_shards{queue="orders",state="expired"}`: "2x70",
			`skein_schedule_late_seconds{queue="orders"}`:        "0+60x70",
		},
		"0m", "20m", ofOrders, "2 shards of queue orders have no owner though servers run.",
	},
	{
		"SkeinScheduleBroken", values{`skein_ticks_total{queue="orders",outcome="broken"}`: "0+1x70"},
		"10m", "11m", ofOrders, "Servers can't read schedules of queue orders, so these don't fire.",
	},
	{ // from a process's first tick on
		"SkeinScheduleBroken", values{`skein_ticks_total{queue="orders",outcome="broken"}`: "_x5 1+1x65"},
		"14m", "20m", ofOrders, "Servers can't read schedules of queue orders, so these don't fire.",
	},
	{
		"SkeinTicksMissed", values{`skein_ticks_total{queue="orders",outcome="missed"}`: "0x4 2x65"},
		"4m", "5m", ofOrders,
		"2 ticks of schedules of queue orders were missed within an hour, and are not made up for.",
	},
	{ // of a process that has run for more than an hour
		"SkeinTicksMissed", values{`skein_ticks_total{queue="orders",outcome="missed"}`: "0x64 7x5"},
		"1h", "1h10m", ofOrders,
		"7 ticks of schedules of queue orders were missed within an hour, and are not made up for.",
	},
	{ // before a process began, which counts them with its first tick
		"SkeinTicksMissed", values{`skein_ticks_total{queue="orders",outcome="missed"}`: "_x5 3x65"},
		"4m", "20m", ofOrders,
		"3 ticks of schedules of queue orders were missed within an hour, and are not made up for.",
	},
	{
		"SkeinExporterStale", values{`skein_exporter_up{}`: "0x70"},
		"4m", "5m", nil, "The metrics of the store are old, or no process exports them.",
	},
	{
		"SkeinExporterStale", values{`skein_exporter_up{}`: ""},
		"4m", "5m", nil, "The metrics of the store are old, or no process exports them.",
	},
	{
		"SkeinExporterStale", values{`skein_exporter_age_seconds{}`: "5+60x70"},
		"9m", "10m", nil, "The metrics of the store are old, or no process exports them.",
	},
}

// silences are shops in which no alert may fire, although the named one nearly does.
var silences = map[string][]values{
	"SkeinQueueLag": {
		{`skein_queue_lag_seconds{queue="orders"}`: "900-5x70"}, // large, and falls
		{`skein_queue_lag_seconds{queue="orders"}`: "0+2x70"},   // grows, and is small
	},
	"SkeinRateTooLow": {
		with(rateTooLow("orders"), values{`skein_queue_lag_seconds{queue="orders"}`: "2x70"}), // no job waits long
		with(rateTooLow("orders"), values{ // more jobs start than are pushed
			`skein_queue_lag_seconds{queue="orders"}`:         "900-5x70",
			`skein_jobs_started_total{queue="orders"}`:        "0+60x70",
			`skein_pushed_total{queue="orders",met="new"}`:    "0+50x70",
			`skein_pushed_total{queue="orders",met="merged"}`: "0+90x70",
		}),
	},
	"SkeinNobodyServes": {
		{ // and no job waits, though jobs are claimed
			`skein_queue_nodes{queue="orders"}`:                "0x70",
			`skein_queue_jobs{queue="orders",state="fresh"}`:   "0x70",
			`skein_queue_jobs{queue="orders",state="retry"}`:   "0x70",
			`skein_queue_jobs{queue="orders",state="claimed"}`: "9x70",
			`skein_queue_lag_seconds{queue="orders"}`:          "0x70",
		},
		with(notServed("orders"), values{`skein_queue_paused{queue="orders"}`: "1x70"}),
		{`skein_queue_jobs{queue="orders",state="orphaned"}`: "600x70"}, // of one server of several
	},
	"SkeinJobsHeld": {
		{`skein_queue_jobs{queue="orders",state="held"}`: "_x5 0x64"},
		{`skein_queue_jobs{queue="orders",state="held"}`: "0x10"}, // and the exporter has ended
	},
	"SkeinQuarantined": {{`skein_queue_jobs{queue="orders",state="quarantined"}`: "_x5 0x64"}},
	"SkeinNotMoving": {
		{ // jobs only fail, and too few for a ratio
			`skein_queue_processed_total{queue="orders"}`: "7x70",
			`skein_queue_failed_total{queue="orders"}`:    "0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 8 8 9 9 10",
		},
		with(ended("orders"), values{`skein_rate_wait_seconds{queue="orders"}`: "864x70"}), // by its rate
		{ // no job is due
			`skein_queue_lag_seconds{queue="orders"}`:     "0x70",
			`skein_queue_processed_total{queue="orders"}`: "7x70",
			`skein_queue_failed_total{queue="orders"}`:    "7x70",
		},
	},
	"SkeinFailureRatio": {
		{`skein_queue_failed_total{queue="orders"}`: "0+140x70"}, // 19 %
		{ // all fail, and that is one a minute
			`skein_queue_processed_total{queue="orders"}`: "7x70",
			`skein_queue_failed_total{queue="orders"}`:    "0+1x70",
		},
	},
	"SkeinMorgueGrows":   {{`skein_queue_jobs{queue="orders",state="dead"}`: "300-1x70"}},
	"SkeinPausedLong":    {{`skein_queue_paused{queue="orders"}`: "1x58 0 1x9"}},
	"SkeinShardsUnowned": {{`skein_queue_shards{queue="orders",state="free"}`: "_ 1 0 0 1 0 0 1 0 0 1 0x70"}},
	"SkeinHotShard": {
		{`skein_queue_shard_lag_seconds{queue="orders",of="max"}`: "59x70"},
		{
			`skein_queue_shard_lag_seconds{queue="orders",of="max"}`:    "290x70",
			`skein_queue_shard_lag_seconds{queue="orders",of="median"}`: "30x70",
		},
		{ // of 3 shards, which may be all that have jobs
			`skein_queue_shard_lag_seconds{queue="orders",of="max"}`: "90x70",
			`skein_queue_shards{queue="orders",state="owned"}`:       "3x70",
		},
	},
	"SkeinLeaseLost":  {{`skein_lease_changes_total{change="dropped"}`: "0+2x70"}},
	"SkeinRecoveries": {{`skein_recovered_jobs_total{queue="orders"}`: "40x70"}},
	"SkeinLanesExhausted": {
		{`skein_lanes_busy{}`: "7x70"},
		{`skein_lanes_busy{}`: "8x70", `skein_queue_lag_seconds{queue="orders"}`: "0x70"}, // and no job waits
		{`skein_lanes_busy{}`: "0x70", `skein_lanes{}`: "0x70"},
		{ // and the jobs that wait are those of a paused queue
			`skein_lanes_busy{}`:                       "8x70",
			`skein_queue_lag_seconds{queue="orders"}`:  "0x70",
			`skein_queue_lag_seconds{queue="exports"}`: "90x70",
			`skein_queue_paused{queue="exports"}`:      "1x70",
			`skein_queue_nodes{queue="exports"}`:       "1x70",
		},
	},
	"SkeinStoreErrors":   {{`skein_store_errors_total{call="turn",kind="unreachable"}`: "0+2x70"}},
	"SkeinStoreFull":     {{`skein_pushes_total{queue="orders",result="full"}`: "40x70"}},
	"SkeinPushesFail":    {{`skein_pushes_total{queue="orders",result="refused"}`: "40x70"}},
	"SkeinPushesRefused": {{`skein_pushes_total{queue="orders",result="unknown"}`: "40x70"}},
	"SkeinCheckFailed": {
		{`skein_store_check{check="memory"}`: "0x4 3 0x65"},
		{`skein_store_check{check="memory"}`: "0x10"},
	},
	"SkeinCheckWarns":     {{`skein_store_check{check="memory"}`: "2 2 2 2 1x70"}},
	"SkeinJobRunsLong":    {{`skein_queue_longest_run_seconds{queue="orders"}`: "3600x70"}},
	"SkeinHandlerOverrun": {{`skein_handler_overrun_total{queue="orders",cause="timeout"}`: "40x70"}},
	"SkeinTicksLate": {
		{`skein_schedule_late_seconds{queue="orders"}`: "60x70"},
		{`skein_schedule_late_seconds{queue="orders"}`: "0 90 90 90 90 0 90 90 90 90 0x60"},
	},
	"SkeinScheduleBroken": {
		{`skein_ticks_total{queue="orders",outcome="broken"}`: "0 1x70"}, // for a moment
		{`skein_ticks_total{queue="orders",outcome="broken"}`: "_x5 1x65"},
	},
	"SkeinTicksMissed":   {{`skein_ticks_total{queue="orders",outcome="skipped"}`: "0+60x70"}},
	"SkeinExporterStale": {{`skein_exporter_age_seconds{}`: "290x70"}},
}

// looks are when shops in which no alert may fire are looked at. Only the rules with an hour in
// them need the later ones, for which promtool evaluates three times as much.
var (
	looks     = []string{"1m", "5m", "10m", "11m", "20m"}
	lateLooks = append(slices.Clone(looks), "59m", "1h", "1h10m")
)

// Parts of promtool's file of tests, with its names.
type (
	inputSeries struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	expectedAlert struct {
		Labels      map[string]string `yaml:"exp_labels"`
		Annotations map[string]string `yaml:"exp_annotations"`
	}
	alertTest struct {
		At     string          `yaml:"eval_time"`
		Alert  string          `yaml:"alertname"`
		Expect []expectedAlert `yaml:"exp_alerts"`
	}
	unitTest struct {
		Name     string        `yaml:"name"`
		Interval string        `yaml:"interval"`
		Series   []inputSeries `yaml:"input_series"`
		Alerts   []alertTest   `yaml:"alert_rule_test"`
	}
)

// newUnitTest returns a test on the shop that is well, with these series in place of its own.
func newUnitTest(name string, replaced values) *unitTest {
	series := well()
	maps.Copy(series, replaced)
	test := &unitTest{Name: name, Interval: "1m"}
	test.add(series)
	return test
}

// add adds series of each instance that has them.
func (u *unitTest) add(series values) {
	for _, key := range slices.Sorted(maps.Keys(series)) {
		instances := []string{"a"}
		name, _, _ := strings.Cut(key, "{")
		if row, _ := metrics.Of(name); row.Source == metrics.Store {
			instances = append(instances, "b") // each exporter of the store
		}
		for _, instance := range instances {
			labelled := strings.Replace(key, "{", fmt.Sprintf(`{job="shop",instance=%q,`, instance), 1)
			if series[key] != "" {
				u.Series = append(u.Series, inputSeries{strings.Replace(labelled, ",}", "}", 1), series[key]})
			}
		}
	}
}

// expect adds that the alert fires at a time, and that no other does.
func (u *unitTest) expect(at string, rules []alertRule, f *firing) {
	for _, rule := range rules {
		test := alertTest{At: at, Alert: rule.Alert}
		if f != nil && rule.Alert == f.alert {
			labels := map[string]string{"severity": rule.Labels["severity"]}
			maps.Copy(labels, f.labels)
			texts := map[string]string{"summary": f.summary, "runbook_url": rule.Annotations["runbook_url"]}
			test.Expect = []expectedAlert{{labels, texts}}
		}
		u.Alerts = append(u.Alerts, test)
	}
}

// unitTests are promtool's tests of all rules: each fires, and each nearly fires and doesn't.
func unitTests(t *testing.T, rules []alertRule) (tests []*unitTest) {
	t.Helper()
	fired := make(map[string]bool)
	for _, f := range firings {
		test := newUnitTest(f.alert+" fires", f.series)
		if f.pending != "" {
			test.expect(f.pending, rules, nil)
		}
		test.expect(f.fires, rules, &f)
		tests = append(tests, test)
		fired[f.alert] = true
	}
	all := newUnitTest("all is well", nil)
	for _, at := range lateLooks {
		all.expect(at, rules, nil)
	}
	tests = append(tests, all)
	for _, rule := range rules {
		if !fired[rule.Alert] || len(silences[rule.Alert]) == 0 {
			t.Errorf("%s needs a shop in which it fires, and one in which it nearly does", rule.Alert)
		}
		for _, series := range silences[rule.Alert] {
			test := newUnitTest(fmt.Sprintf("%s is silent with %v", rule.Alert, series), series)
			times := looks
			if strings.Contains(rule.Expr+rule.For, "1h") {
				times = lateLooks
			}
			for _, at := range times {
				test.expect(at, rules, nil)
			}
			tests = append(tests, test)
		}
	}
	return tests
}

// The rules as they are published fire where they must, with their labels and texts, and nowhere
// else. promtool evaluates them in virtual time on written series.
func TestEachAlertFiresWhereItMustAndNowhereElse(t *testing.T) {
	t.Parallel()
	promtoolTests(t, unitTests(t, alertRules(t)))
}
