package metrics

// waits are bounds for durations from a millisecond to an hour, in seconds. Each bound is one more
// series for each queue: with one more bound, a process with 20 queues would have more than 2,100
// series.
func waits() []float64 {
	return []float64{0.001, 0.005, 0.025, 0.1, 0.25, 1, 5, 15, 60, 300, 900, 3600}
}

// calls are bounds for exchanges with a store, in seconds.
func calls() []float64 { return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1, 5} }

// sizes are bounds for counts.
func sizes() []float64 { return []float64{1, 2, 5, 10, 25, 100, 250, 1000} }

// ofProcess returns the metrics of an Observer.
func ofProcess() []Metric {
	return append(ofJobs(), []Metric{
		{
			Name:    "skein_turn_duration_seconds",
			Type:    Histogram,
			Source:  Process,
			By:      "TurnEnd",
			Unit:    "seconds",
			Buckets: calls(),
			Help:    "Durations of turns, the exchanges of a shard with the store.",
		},
		{
			Name:    "skein_turn_jobs",
			Type:    Histogram,
			Source:  Process,
			By:      "TurnEnd",
			Unit:    "jobs",
			Labels:  []Label{one("direction", "claimed", "settled")},
			Buckets: sizes(),
			Help:    "Jobs that a turn claimed or settled.",
		},
		{
			Name:   "skein_turns_total",
			Type:   Counter,
			Source: Process,
			By:     "TurnEnd",
			Unit:   "turns",
			Labels: []Label{one("result", "ok", "lost", "stale", "unknown")},
			Help: "Turns: ok; lost, because the lease was lost; stale, which had already been carried out; or " +
				"unknown, which are sent again.",
		},
		{
			Name:   "skein_wakeups_total",
			Type:   Counter,
			Source: Process,
			By:     "TurnEnd",
			Unit:   "wakeups",
			Labels: []Label{one("result", "work", "spurious")},
			Help:   "Wake-ups, by whether the next turn claimed jobs.",
		},
		{
			Name:   "skein_lease_changes_total",
			Type:   Counter,
			Source: Process,
			By:     "LeaseChanged",
			Unit:   "leases",
			Labels: []Label{one("change", "acquired", "released", "dropped")},
			Help:   "Leases acquired, released, and lost.",
		},
		{
			Name:   "skein_node_changes_total",
			Type:   Counter,
			Source: Process,
			By:     "NodeChanged",
			Unit:   "nodes",
			Labels: []Label{one("change", "joined", "drains", "resumed", "left")},
			Help: "Servers that started, drained, ended a drain and stopped, as seen by this process, its own " +
				"servers included.",
		},
		{
			Name:   "skein_store_errors_total",
			Type:   Counter,
			Source: Process,
			By:     "StoreFailed",
			Unit:   "calls",
			Labels: []Label{
				one("call", "acquire", "turn", "renew", "release", "declare", "announce", "record",
					"permits", "rate", "orphans", "poll", "ticks", "fire", "settings", "retention", "listen"),
				one("kind", "refused", "full", "unreachable", "unknown"),
			},
			Help: "Calls of servers to the store that failed. Pushes are in skein_pushes_total.",
		},
		{
			Name:   "skein_build_info",
			Type:   Gauge,
			Source: Process,
			By:     "New",
			Unit:   "",
			Labels: []Label{{Name: "version"}, {Name: "go"}},
			Help:   "Always 1; its labels are the versions of the program and of Go.",
		},
	}...)
}

// ofJobs returns the metrics of an Observer that each queue has.
func ofJobs() []Metric {
	return []Metric{
		{
			Name:   "skein_pushes_total",
			Type:   Counter,
			Source: Process,
			By:     "Pushed",
			Unit:   "pushes",
			Labels: []Label{queue(), one("result", "stored", "in_tx", "refused", "full", "unknown")},
			Help: "Pushes: stored; in_tx, in a caller's transaction, which may still roll back; refused; full, " +
				"refused because the store has no room; or unknown, which may have been stored.",
		},
		{
			Name:      "skein_pushed_total",
			Messaging: "messaging.client.sent.messages",
			Type:      Counter,
			Source:    Process,
			By:        "Pushed",
			Unit:      "payloads",
			Labels:    []Label{queue(), one("met", "new", "merged", "duplicate")},
			Help: "Pushed payloads: new, which made a job; merged, into a queued job; or duplicate, which were " +
				"already in it, superseded at once, stale, or repeated. Pushes in a caller's transaction are not counted.",
		},
		{
			Name:      "skein_push_duration_seconds",
			Messaging: "messaging.client.operation.duration",
			Type:      Histogram,
			Source:    Process,
			By:        "Pushed",
			Unit:      "seconds",
			Labels:    []Label{queue()},
			Buckets:   calls(),
			Help:      "Durations of pushes.",
		},
		{
			Name:    "skein_jobs_started_total",
			Type:    Counter,
			Source:  Process,
			By:      "BatchStart",
			Unit:    "jobs",
			Sharded: true,
			Labels:  []Label{queue()},
			Help:    "Jobs passed to handlers.",
		},
		{
			Name:    "skein_jobs_total",
			Type:    Counter,
			Source:  Process,
			By:      "JobsEnded",
			Unit:    "jobs",
			Sharded: true,
			Labels: []Label{
				queue(),
				one("outcome", "done", "failed", "snoozed", "buried", "putback", "cancelled", "lost", "awaiting",
					"held"),
			},
			Help: "Executions of jobs by outcome, once the store has accepted it: failed, and retried; buried, also " +
				"after the last retry; held, instead of buried after it; or lost, together with their lease.",
		},
		{
			Name:      "skein_payloads_total",
			Messaging: "messaging.client.consumed.messages",
			Type:      Counter,
			Source:    Process,
			By:        "BatchStart",
			Unit:      "payloads",
			Sharded:   true,
			Labels:    []Label{queue()},
			Help:      "Payloads of the jobs passed to handlers.",
		},
		{
			Name:    "skein_payloads_buried_total",
			Type:    Counter,
			Source:  Process,
			By:      "JobsEnded",
			Unit:    "payloads",
			Sharded: true,
			Labels:  []Label{queue()},
			Help:    "Payloads that were buried in the morgue.",
		},
		{
			Name:    "skein_job_payloads",
			Type:    Histogram,
			Source:  Process,
			By:      "BatchStart",
			Unit:    "payloads",
			Sharded: true,
			Labels:  []Label{queue()},
			Buckets: sizes(),
			Help:    "Payloads of a job; a frequently pushed entity has many.",
		},
		{
			Name:    "skein_job_wait_seconds",
			Type:    Histogram,
			Source:  Process,
			By:      "BatchStart",
			Unit:    "seconds",
			Sharded: true,
			Labels:  []Label{queue()},
			Buckets: waits(),
			Help: "The time from when a job was due, or first pushed if that was later, to the start of its " +
				"batch, by the store's clock.",
		},
		{
			Name:      "skein_job_duration_seconds",
			Messaging: "messaging.process.duration",
			Type:      Histogram,
			Source:    Process,
			By:        "BatchEnd",
			Unit:      "seconds",
			Sharded:   true,
			Labels:    []Label{queue(), one("outcome", "ok", "error")},
			Buckets:   waits(),
			Help:      "Durations of handlers, one per batch; error if any of its jobs failed or was buried.",
		},
		{
			Name:    "skein_recovered_jobs_total",
			Type:    Counter,
			Source:  Process,
			By:      "LeaseChanged, TurnEnd",
			Unit:    "jobs",
			Sharded: true,
			Labels:  []Label{queue()},
			Help:    "Jobs recovered from servers that died or lost their lease.",
		},
		{
			Name:   "skein_ticks_total",
			Type:   Counter,
			Source: Process,
			By:     "TicksFired",
			Unit:   "ticks",
			Labels: []Label{queue(), one("outcome", "fired", "missed", "skipped", "broken")},
			Help: "Ticks of schedules: fired; missed, since no server fired them in time; " +
				"skipped, since the id had a job; or broken, a look at a schedule whose spec the server can't read.",
		},
		{
			Name:    "skein_tick_late_seconds",
			Type:    Histogram,
			Source:  Process,
			By:      "TicksFired",
			Unit:    "seconds",
			Labels:  []Label{queue()},
			Buckets: waits(),
			Help:    "The time from when a tick was due to its push, by the store's clock.",
		},
		{
			Name:   "skein_dead_letters_expired_total",
			Type:   Counter,
			Source: Process,
			By:     "DeadLettersExpired",
			Unit:   "dead letters",
			Labels: []Label{queue()},
			Help:   "Dead letters that were removed because their queue keeps only some, by their age or their number.",
		},
		{
			Name:   "skein_rate_slots_total",
			Type:   Counter,
			Source: Process,
			By:     "SlotsTaken",
			Unit:   "slots",
			Labels: []Label{queue(), one("result", "granted", "delayed")},
			Help: "Starts of batches for which servers asked the rate of their queue: granted; or delayed, which are " +
				"asked for again, so that one start may be counted several times.",
		},
		{
			Name:   "skein_rate_stops_total",
			Type:   Counter,
			Source: Process,
			By:     "QueueSlowed",
			Unit:   "stops",
			Labels: []Label{queue()},
			Help:   "Stops of the rate of a queue by handlers that returned SlowDown.",
		},
		{
			Name:    "skein_handler_overrun_total",
			Type:    Counter,
			Source:  Process,
			By:      "HandlerOverran",
			Unit:    "batches",
			Sharded: true,
			Labels:  []Label{queue(), one("cause", "timeout", "cancel", "lease", "shutdown")},
			Help:    "Handlers that still ran a minute after their context had ended. Each keeps a lane.",
		},
	}
}
