package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
)

// connections is how many the systems may open: as many as asynq can use at its
// highest concurrency.
const connections = 64

// lab is where works are measured: one Redis, for one system at a time.
type lab struct {
	redis *goredis.Client
	jobs  int
	log   io.Writer
}

// openLab connects to a Redis whose database must be empty: it is flushed before
// every measurement.
func openLab(ctx context.Context, url string, jobs int, log io.Writer) (*lab, error) {
	options, err := goredis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.PoolSize = connections
	l := &lab{redis: goredis.NewClient(options), jobs: jobs, log: log}
	size, err := l.redis.DBSize(ctx).Result()
	if err == nil && size > 0 {
		err = fmt.Errorf("%s has %d keys; give a database that is empty, since it is flushed", url, size)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// flush empties the database.
func (l *lab) flush(ctx context.Context) error { return l.redis.FlushDB(ctx).Err() }

// system is a system as most works use it, on an empty database.
func (l *lab) system(ctx context.Context, name string) (system, error) {
	if name == asynqName {
		return newAsynq(l.redis, skein.DefaultLanes), l.flush(ctx)
	}
	return newSkein(l.redis, 0), l.flush(ctx)
}

// results are the readings of each row, in the order in which they came.
type results struct {
	rows   []reading // without values
	values map[reading][]float64
}

func (r *results) add(readings []reading) {
	if r.values == nil {
		r.values = map[reading][]float64{}
	}
	for _, x := range readings {
		key := x
		key.value = 0
		if !slices.Contains(r.rows, key) {
			r.rows = append(r.rows, key)
		}
		r.values[key] = append(r.values[key], x.value)
	}
}

// measure goes through all probes in turn, runs times. What it has when it fails
// or is stopped it returns as well.
func (l *lab) measure(ctx context.Context, probes []*probe, runs int) (map[*probe]*results, error) {
	all := map[*probe]*results{}
	for _, p := range probes {
		all[p] = &results{}
	}
	for run := range runs {
		for _, p := range probes {
			if p.once && run > 0 {
				continue
			}
			began := time.Now()
			readings, err := p.measure(ctx, l)
			if err != nil {
				return all, fmt.Errorf("%s: %w", p.name, err)
			}
			all[p].add(readings)
			fmt.Fprintf(l.log, "run %d of %d: %s took %v\n", run+1, runs, p.name, time.Since(began).Round(time.Second/10))
			for _, x := range readings {
				fmt.Fprintf(l.log, "    %s, %s: %s %s\n", x.system, x.setting, figure(x.value), x.unit)
			}
		}
	}
	return all, nil
}
