package metrics

// ofServer returns the gauges of the servers of a process.
func ofServer() []Metric {
	return []Metric{
		{
			Name:   "skein_lanes",
			Type:   Gauge,
			Source: Server,
			By:     "Lanes",
			Unit:   "lanes",
			Help:   "The largest number of batches that the servers of this process run at once.",
		},
		{
			Name:   "skein_lanes_busy",
			Type:   Gauge,
			Source: Server,
			By:     "Status.Busy",
			Unit:   "lanes",
			Help:   "Lanes that are running a batch.",
		},
		{
			Name:   "skein_jobs_running",
			Type:   Gauge,
			Source: Server,
			By:     "Status.Queues[].Running",
			Unit:   "jobs",
			Labels: []Label{queue()},
			Help:   "Jobs in running batches.",
		},
		{
			Name:   "skein_jobs_buffered",
			Type:   Gauge,
			Source: Server,
			By:     "Status.Queues[].Claimed",
			Unit:   "jobs",
			Labels: []Label{queue()},
			Help:   "Claimed jobs that have not started.",
		},
		{
			Name:   "skein_leases_held",
			Type:   Gauge,
			Source: Server,
			By:     "Status.Queues[].Shards",
			Unit:   "leases",
			Labels: []Label{queue()},
			Help:   "Shards that the servers of this process have leased.",
		},
	}
}

// ofStore returns the metrics of the store, which are the same in every process that reads it.
func ofStore() []Metric {
	return append(ofQueues(), []Metric{
		{
			Name:   "skein_nodes",
			Type:   Gauge,
			Source: Store,
			By:     "Nodes",
			Unit:   "nodes",
			Labels: []Label{one("state", "alive", "draining")},
			Help:   "Servers that announce themselves.",
		},
		{
			Name:   "skein_store_check",
			Type:   Gauge,
			Source: Store,
			By:     "Checks",
			Unit:   "",
			Labels: []Label{{Name: "check"}},
			Help:   "The worst status of each check of the store's servers: 0 ok, 1 unknown, 2 warn, 3 fail.",
		},
		{
			Name:   "skein_exporter_up",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "",
			Help:   "1 if the last reading of the store succeeded, 0 if it failed and the values shown are older.",
		},
		{
			Name:   "skein_exporter_age_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "seconds",
			Help:   "The age of the values shown; absent before the first successful reading of the store.",
		},
		{
			Name:   "skein_exporter_look_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "seconds",
			Help: "The duration of the last reading of the store. The next reading follows after 99 times this " +
				"duration, at least 5 s, and after a failed reading at most 1 min.",
		},
	}...)
}

// ofQueues returns the metrics of the store that each queue has.
func ofQueues() []Metric {
	return []Metric{
		{
			Name:   "skein_queue_jobs",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "jobs",
			Labels: []Label{
				queue(),
				one("state", "fresh", "retry", "claimed", "orphaned", "held", "dead", "quarantined"),
			},
			Help: "Jobs of a queue. Fresh and retry are queued, also if not due yet. Held wait for an operator. " +
				"Orphaned are counted as claimed too: their server is gone. Dead counts ids in the morgue.",
		},
		{
			Name:   "skein_queue_lag_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "seconds",
			Labels: []Label{queue()},
			Help: "The longest wait of a job for a server, from when it was due and pushed, or from the end of its " +
				"server's lease.",
		},
		{
			Name:   "skein_queue_processed_total",
			Type:   Counter,
			Source: Store,
			By:     "Stats",
			Unit:   "jobs",
			Labels: []Label{queue()},
			Help:   "Jobs done since the queue began, on all servers.",
		},
		{
			Name:   "skein_queue_failed_total",
			Type:   Counter,
			Source: Store,
			By:     "Stats",
			Unit:   "jobs",
			Labels: []Label{queue()},
			Help:   "Jobs that failed or were buried since the queue began, on all servers.",
		},
		{
			Name:   "skein_queue_superseded_total",
			Type:   Counter,
			Source: Store,
			By:     "Stats",
			Unit:   "payloads",
			Labels: []Label{queue()},
			Help: "Payloads that the queue's merge rule has dropped since the queue began, because the rule keeps " +
				"only the highest ones.",
		},
		{
			Name:   "skein_queue_stale_total",
			Type:   Counter,
			Source: Store,
			By:     "Stats",
			Unit:   "payloads",
			Labels: []Label{queue()},
			Help: "Payloads that were dropped since the queue began, because a payload of their id with at least " +
				"their score was done.",
		},
		{
			Name:   "skein_queue_repeated_total",
			Type:   Counter,
			Source: Store,
			By:     "Stats",
			Unit:   "payloads",
			Labels: []Label{queue()},
			Help: "Payloads that were dropped since the queue began, because an equal one was accepted for their id " +
				"within the time of its push.",
		},
		{
			Name:   "skein_queue_paused",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "",
			Labels: []Label{queue()},
			Help:   "1 if an operator has paused the queue.",
		},
		{
			Name:   "skein_queue_setting",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "",
			Labels: []Label{queue(), one("setting", "max_lanes", "max_running", "morgue_age_seconds", "morgue_count", "rate_per_second")},
			Help: "The values of the settings that operators have set of the queue; 0 is no limit. " +
				"A setting that is unset has no series.",
		},
		{
			Name:   "skein_queue_shards",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "shards",
			Labels: []Label{queue(), one("state", "owned", "free", "expired", "unreached")},
			Help: "Shards by their lease: owned; free, released or never leased; expired, its owner is gone; or " +
				"unreached, and not in the queue's other values.",
		},
		{
			Name:   "skein_queue_shard_lag_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "seconds",
			Labels: []Label{queue(), one("of", "max", "median")},
			Help:   "The largest and the median lag of the queue's shards.",
		},
		{
			Name:   "skein_queue_shard_jobs_max",
			Type:   Gauge,
			Source: Store,
			By:     "Stats",
			Unit:   "jobs",
			Labels: []Label{queue()},
			Help:   "The largest number of waiting jobs in one shard.",
		},
		{
			Name:   "skein_queue_nodes",
			Type:   Gauge,
			Source: Store,
			By:     "Nodes",
			Unit:   "nodes",
			Labels: []Label{queue()},
			Help:   "Servers that serve the queue and don't drain.",
		},
		{
			Name:   "skein_queue_longest_run_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "Nodes",
			Unit:   "seconds",
			Labels: []Label{queue()},
			Help: "For how long the handler has run that runs longest in the queue, as its servers have announced; " +
				"0 if none runs.",
		},
		{
			Name:   "skein_rate_wait_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "RateWaits",
			Unit:   "seconds",
			Labels: []Label{queue()},
			Help: "How long until the rate of the queue allows the next start; 0 if it allows one now. " +
				"Queues that servers run without a rate don't have it.",
		},
		{
			Name:   "skein_schedule_late_seconds",
			Type:   Gauge,
			Source: Store,
			By:     "LateTicks",
			Unit:   "seconds",
			Labels: []Label{queue()},
			Help: "For how long the longest-due tick of the queue's schedules has been due; 0 if none is due. " +
				"Queues without a next tick, and paused queues, don't have it.",
		},
	}
}
