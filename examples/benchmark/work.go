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
	perJob    = "bytes/job"
)

// costs reports whether less of a unit is better.
func costs(unit string) bool { return unit != perSecond }

// reading is one thing that was measured, once.
type reading struct {
	system, setting, unit string
	value                 float64
}

// probe measures one system at one setting. Works share a probe that serves them
// all, and it is measured once for them.
type probe struct {
	name string
	// once is a probe whose value does not vary: later rounds leave it out.
	once    bool
	measure func(ctx context.Context, l *lab) ([]reading, error)
}

// work is what systems are compared at.
type work struct {
	name   string
	probes []*probe
}

// choose returns the named works, in their own order, or all but those on demand.
func choose(all []work, names string) ([]work, error) {
	if names == "" {
		return slices.DeleteFunc(slices.Clone(all), func(w work) bool { return w.name == hugeBacklog }), nil
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(w work) bool { return w.name == name }) {
			return nil, fmt.Errorf("there is no work %q", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(w work) bool { return !slices.Contains(wanted, w.name) }), nil
}

// probesOf are the probes of some works, each once, in order.
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

// allWorks are the works against a rival, which is asynqName, or "" for none.
func allWorks(rival string) []work {
	beside := func(probes ...*probe) []*probe {
		if rival == asynqName {
			return probes
		}
		return nil
	}
	handled := beside(handleAsynq(5), handleAsynq(10), handleAsynq(50))
	fromTen := pushOneProbe(asynqName, fillers)
	return []work{
		{"handle", with(handled, handleSkein("5 lanes", 0))},
		{"handle-prefetch1", with(handled, handleSkein("5 lanes, Prefetch 1", 1))},
		{"push-batch", with(beside(fromTen), pushBatchProbe(1), pushBatchProbe(fillers))},
		{"push-one", interleave(
			[]*probe{pushOneProbe(skeinName, 1), pushOneProbe(skeinName, fillers)},
			beside(pushOneProbe(asynqName, 1), fromTen))},
		{"latency", with(beside(latencyAsynq()), latencySkein())},
		{"memory", with(beside(memoryProbe(asynqName)), memoryProbe(skeinName))},
		{"merge", with(beside(mergeProbe(asynqName)), mergeProbe(skeinName))},
		{"hot-shard", with(handled, hotShard())},
		{"backlog", []*probe{backlogProbe(10_000), backlogProbe(1_000_000)}},
		{hugeBacklog, []*probe{backlogProbe(10_000), backlogProbe(10_000_000)}},
		{"ceiling", ceilingProbes()},
	}
}

// with is Skein's probes, then others'.
func with(others []*probe, own ...*probe) []*probe { return append(own, others...) }

// interleave takes from two lists in turn.
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
