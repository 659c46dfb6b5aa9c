package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"
)

// lab has the database on which works are measured. One system uses it at a time.
type lab struct {
	redis    *goredis.Client // nil for the works on Postgres
	postgres *pgxpool.Pool   // nil for the works on Redis
	jobs     int
	log      io.Writer
	// close ends everything that was opened or started for the lab.
	close func() error
}

// openLab makes the lab that the rival's works need.
func openLab(ctx context.Context, o options, log io.Writer) (*lab, error) {
	if o.rival == riverName {
		return openPostgres(ctx, o.postgres, o.jobs, log)
	}
	return openRedis(ctx, o.redis, o.jobs, log)
}

// flush empties the Redis database.
func (l *lab) flush(ctx context.Context) error { return l.redis.FlushDB(ctx).Err() }

// tidy does the work that Postgres would do by itself within some minutes.
func (l *lab) tidy(ctx context.Context) error {
	if l.postgres == nil {
		return nil
	}
	return vacuum(ctx, l.postgres)
}

// opener makes a system on an empty database.
type opener func(ctx context.Context, l *lab) (system, error)

// system returns a system as most works use it, on an empty database.
func (l *lab) system(ctx context.Context, name string) (system, error) {
	switch name {
	case asynqName:
		return withAsynq(fewLanes)(ctx, l)
	case riverName:
		return withRiver(riverDefaults)(ctx, l)
	}
	return withSkein(skeinSetting{})(ctx, l)
}

// results are the readings of each row, in the order of their measurement.
type results struct {
	rows []reading // without values
	of   map[reading][]reading
}

func (r *results) add(readings []reading) {
	if r.of == nil {
		r.of = map[reading][]reading{}
	}
	for _, x := range readings {
		key := reading{system: x.system, setting: x.setting, unit: x.unit}
		if !slices.Contains(r.rows, key) {
			r.rows = append(r.rows, key)
		}
		r.of[key] = append(r.of[key], x)
	}
}

// measure runs all probes in turn, several times. If it fails or is stopped, it returns the
// results so far as well.
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
			fmt.Fprintf(l.log, "run %d of %d: %s took %v\n",
				run+1, runs, p.name, time.Since(began).Round(time.Second/10))
			for _, x := range readings {
				fmt.Fprintf(l.log, "    %s, %s: %s %s  %s\n", x.system, x.setting, figure(x.value), x.unit, x.cpu)
			}
		}
	}
	return all, nil
}
