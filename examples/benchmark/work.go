package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Units of readings.
const (
	perSecond = "jobs/s"
	millis    = "ms"
	millisP50 = "ms at p50"
	millisP99 = "ms at p99"
	perJob    = "bytes/job"
	heapMB    = "MB of heaps"
	indexMB   = "MB of indexes"
)

// costs reports whether a smaller value of a unit is better.
func costs(unit string) bool { return unit != perSecond }

// reading is one measured value.
type reading struct {
	system, setting, unit string
	value                 float64
	// cpu is the processor time for each job, which is measured too.
	cpu cpuPerJob
}

// probe measures one system at one setting. Several works can share a probe, which is measured once
// for all of them.
type probe struct {
	name string
	// once is set if the value does not vary. Then later rounds leave the probe out.
	once    bool
	measure func(ctx context.Context, l *lab) ([]reading, error)
}

// work is a task by which systems are compared.
type work struct {
	name     string
	probes   []*probe
	onDemand bool // it takes long, and runs only if it is named
}

// choose returns the named works, in the order of the table, or all works except those on demand.
func choose(all []work, names string) ([]work, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(all), func(w work) bool { return w.onDemand }), nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(w work) bool { return w.name == name }) {
			return nil, fmt.Errorf("there is no work %q", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(w work) bool { return !slices.Contains(wanted, w.name) }), nil
}

// probesOf returns the probes of some works in order, without duplicates.
func probesOf(works []work) []*probe {
	var probes []*probe
	for _, w := range works {
		for _, p := range w.probes {
			if !slices.Contains(probes, p) {
				probes = append(probes, p)
			}
		}
	}
	return probes
}

// allWorks returns the works against a rival: riverName on Postgres, asynqName or "" for
// none on Redis.
func allWorks(rival string) []work {
	if rival == riverName {
		return postgresWorks()
	}
	return redisWorks(rival)
}

func redisWorks(rival string) []work {
	beside := func(probes ...*probe) []*probe {
		if rival == asynqName {
			return probes
		}
		return nil
	}

	const call = "PushMany of"
	handled := beside(handleAsynq(5), handleAsynq(10), handleAsynq(50))
	ioBeside := beside(ioAsynq()...)
	fromTen := pushOneProbe(asynqName, fillers, 1)

	return []work{
		{name: "handle", probes: with(handled, handleSkein("5 lanes", 0))},
		{name: "handle-prefetch1", probes: with(handled, handleSkein("5 lanes, Prefetch 1", 1))},
		{
			name:   "push-batch",
			probes: with(beside(fromTen), pushBatchProbe(skeinName, call, 1), pushBatchProbe(skeinName, call, fillers)),
		},
		{name: "push-one", probes: interleave(
			[]*probe{pushOneProbe(skeinName, 1, 1), pushOneProbe(skeinName, fillers, 1)},
			beside(pushOneProbe(asynqName, 1, 1), fromTen))},
		{name: "latency", probes: with(beside(latencyAsynq()), latencySkein(skeinSamples))},
		{name: "io", probes: ioProbes(false, ioBeside)},
		{name: "io-hot", probes: ioProbes(true, ioBeside)},
		{name: "mixed", probes: with(beside(mixedAsynq()), mixedSkein(0), mixedSkein(mixedShards))},
		{name: "start", probes: startProbes(redisStarts)},
		{name: "idle", probes: idleProbes()},
		{name: "nodes", probes: fleetProbes(), onDemand: true},
		{name: "memory", probes: with(beside(memoryProbe(asynqName)), memoryProbe(skeinName))},
		{name: "merge", probes: with(beside(mergeProbe(asynqName)), mergeProbe(skeinName))},
		{name: "hot-shard", probes: with(handled, hotShard())},
		{name: "backlog", probes: []*probe{backlogOf(10_000), backlogOf(1_000_000)}},
		{name: "backlog-huge", probes: []*probe{backlogOf(10_000), backlogOf(10_000_000)}, onDemand: true},
		{name: "ceiling", probes: ceilingProbes()},
	}
}

// one is the share of the usual jobs for works that commit each job by itself.
const one = 20

// postgresWorks returns the works on Postgres. The rival is River or, for one job in a turn, the
// bare queue.
func postgresWorks() []work {
	const call = "calls of"
	from := func(name string) []*probe {
		return []*probe{pushOneProbe(name, 1, one), pushOneProbe(name, fillers, one)}
	}
	many := func(name string) []*probe {
		return []*probe{pushBatchProbe(name, call, 1), pushBatchProbe(name, call, fillers)}
	}

	ioBeside := ioRiver()
	return []work{
		{name: "handle", probes: []*probe{
			handleSkein("5 lanes", 0),
			handleProbe(riverName, riverBench.String(), 1, withRiver(riverBench)),
			handleProbe(riverName, riverDefaults.String(), one, withRiver(riverDefaults)),
		}},
		{name: "handle-one", probes: []*probe{
			handleSkein("5 lanes, Prefetch 1", 1),
			handleProbe(bareName, plural(bareConnections, "connection"), 1, withBare),
		}},
		{name: "push-batch", probes: interleave(many(skeinName), many(riverName))},
		{name: "push-one", probes: interleave(from(skeinName), from(riverName))},
		{name: "latency", probes: []*probe{latencySkein(postgresSamples), latencyRiver()}},
		{name: "latency-apart", probes: []*probe{latencySkeinApart(postgresSamples), latencyRiver()}},
		{name: "io", probes: ioProbes(false, ioBeside)},
		{name: "io-hot", probes: ioProbes(true, ioBeside)},
		{name: "mixed", probes: []*probe{mixedSkein(0), mixedSkein(mixedShards), mixedRiver()}},
		{name: "start", probes: startProbes(postgresStarts)},
		{name: "idle", probes: idleProbes()},
		{name: "nodes", probes: fleetProbes(), onDemand: true},
		{name: "backlog", probes: []*probe{backlogTimes(1), backlogTimes(5)}},
		{name: "snapshot", probes: []*probe{snapshotProbe()}, onDemand: true},
		{name: "churn", probes: []*probe{churnProbe(false)}, onDemand: true},
		{name: "churn-snapshot", probes: []*probe{churnProbe(true)}, onDemand: true},
	}
}

// with returns the probes of Skein, and then those of the others.
func with(others []*probe, own ...*probe) []*probe { return append(own, others...) }

// interleave returns the elements of two lists, one of each list in turn.
func interleave(a, b []*probe) []*probe {
	var all []*probe
	for i := range max(len(a), len(b)) {
		for _, list := range [][]*probe{a, b} {
			if i < len(list) {
				all = append(all, list[i])
			}
		}
	}
	return all
}
