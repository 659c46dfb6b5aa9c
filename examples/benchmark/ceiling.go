package main

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
)

//go:embed ceiling.lua
var ceilingText string

// ceilingBase is the prefix of the keys of the queue under test.
const ceilingBase = "skein:{bench/"

// ceilingConnections is the largest number of turns that Skein has in flight: one for each shard.
const ceilingConnections = skein.DefaultShards

// ceilingProbes measures Skein, and then the limit of its Redis: a script with the commands of
// Skein's turns, with as many jobs in a call and as many connections as Skein had, driven by the
// same client, and by redis-benchmark.
func ceilingProbes() []*probe {
	perCall := 0
	setting := plural(ceilingConnections, "connection")
	return []*probe{
		{name: "ceiling, skein", measure: func(ctx context.Context, l *lab) ([]reading, error) {
			x, n, err := handleCounted(ctx, l)
			perCall = n
			x.system, x.setting = skeinName, setting
			return []reading{x}, err
		}},
		{name: "ceiling, script", measure: func(ctx context.Context, l *lab) ([]reading, error) {
			x, err := scripted(ctx, l, perCall)
			x.system, x.setting = "script", setting
			return []reading{x}, err
		}},
		{name: "ceiling, redis-benchmark", measure: func(ctx context.Context, l *lab) ([]reading, error) {
			x, err := benchmarked(ctx, l, perCall)
			return []reading{
				{system: "redis-benchmark", setting: setting + ", the same script", unit: perSecond, value: x},
			}, err
		}},
	}
}

// handleCounted handles jobs by Skein and also returns how many it did in a call.
func handleCounted(ctx context.Context, l *lab) (handled reading, perCall int, err error) {
	s, err := l.system(ctx, skeinName)
	if err != nil {
		return handled, 0, err
	}

	jobs := newJobs(l.jobs)
	if err := s.fill(ctx, jobs); err != nil {
		return handled, 0, err
	}

	before, err := l.scriptCalls(ctx)
	if err != nil {
		return handled, 0, err
	}

	d, err := l.drain(ctx, s, jobs)
	if err != nil {
		return handled, 0, err
	}

	after, err := l.scriptCalls(ctx)
	if err != nil {
		return handled, 0, err
	}

	perCall = max(1, int(int64(l.jobs)/max(1, after-before)))
	fmt.Fprintf(l.log, "    %d jobs in a call\n", perCall)
	return reading{unit: perSecond, value: rate(l.jobs, d.fromStart), cpu: d.cpu.per(l.jobs)}, perCall, nil
}

// scriptCalls returns how many scripts Redis has run.
func (l *lab) scriptCalls(ctx context.Context) (int64, error) {
	info, err := l.redis.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	return infoField(info, "cmdstat_evalsha:calls=")
}

// prepared fills the queue with Skein, so that its keys are the same, and loads the script.
func prepared(ctx context.Context, l *lab) (sha string, err error) {
	s, err := l.system(ctx, skeinName)
	if err != nil {
		return "", err
	}
	if err := s.fill(ctx, newJobs(l.jobs)); err != nil {
		return "", err
	}
	return l.redis.ScriptLoad(ctx, ceilingText).Result()
}

// scripted runs the script on all shards at once until each has none left.
func scripted(ctx context.Context, l *lab, perCall int) (reading, error) {
	sha, err := prepared(ctx, l)
	if err != nil {
		return reading{}, err
	}

	shards := make([]int, ceilingConnections)
	for i := range shards {
		shards[i] = i
	}

	m := l.startMeter(ctx)
	err = concurrently(ctx, shards, func(ctx context.Context, shard int) error {
		for {
			claims, err := l.redis.EvalSha(ctx, sha, nil, ceilingBase, shard, perCall).Slice()
			if err != nil && err != goredis.Nil || len(claims) == 0 {
				return err
			}
		}
	})
	if err != nil {
		return reading{}, err
	}

	took, cpu := m.read(ctx)
	row := reading{unit: perSecond, value: rate(l.jobs, took), cpu: cpu.per(l.jobs)}
	return row, expect(ctx, newSkein(l, redis.New(l.redis, redis.Options{}), skeinSetting{}), 0)
}

// benchmarked has redis-benchmark run the script, on a shard drawn for each call.
func benchmarked(ctx context.Context, l *lab, perCall int) (float64, error) {
	sha, err := prepared(ctx, l)
	if err != nil {
		return 0, err
	}
	// Two thirds of the calls that would empty the queue, so that no shard becomes empty.
	calls := max(1, 2*l.jobs/3/perCall)
	host, port, _ := strings.Cut(l.redis.Options().Addr, ":")
	command := exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "--csv",
		"-c", strconv.Itoa(ceilingConnections), "-n", strconv.Itoa(calls), "-r", strconv.Itoa(skein.DefaultShards),
		"evalsha", sha, "0", ceilingBase, "__rand_int__", strconv.Itoa(perCall))

	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}

	callRate, err := csvRate(string(out))
	if err != nil {
		return 0, err
	}

	left, err := newSkein(l, redis.New(l.redis, redis.Options{}), skeinSetting{}).left(ctx)
	// The claims of the last call of each shard still exist.
	if gone := (calls - skein.DefaultShards) * perCall; err == nil && left > int64(l.jobs-gone) {
		err = fmt.Errorf("redis-benchmark left %d jobs: some calls found none; give more -jobs", left)
	}
	return callRate * float64(perCall), err
}

// csvRate returns the calls a second in what redis-benchmark --csv prints.
func csvRate(out string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Split(lines[len(lines)-1], ",")
	if len(fields) < 2 {
		return 0, fmt.Errorf("redis-benchmark printed %q", out)
	}
	return strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
}
