package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// memoryFactor is the number of stored jobs as a multiple of the jobs of other works. By default a
// million jobs are stored.
const memoryFactor = 5

// settles is how long Redis is left alone before it is asked: it gives back the
// buffers of connections that are idle, and ends rehashing.
const settles = 5 * time.Second

// memoryProbe measures how much used_memory grows for each queued job.
func memoryProbe(name string) *probe {
	return &probe{name: "memory, " + name, once: true, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		s, err := l.system(ctx, name)
		if err != nil {
			return nil, err
		}

		time.Sleep(settles)
		before, err := l.usedMemory(ctx)
		if err != nil {
			return nil, err
		}

		n := memoryFactor * l.jobs
		if err := s.fill(ctx, newJobs(n)); err != nil {
			return nil, err
		}
		if err := expect(ctx, s, n); err != nil {
			return nil, err
		}

		time.Sleep(settles)
		after, err := l.usedMemory(ctx)
		return []reading{{
			system: name, setting: fmt.Sprintf("%d queued", n), unit: perJob,
			value: float64(after-before) / float64(n),
		}}, err
	}}
}

func (l *lab) usedMemory(ctx context.Context) (int64, error) {
	info, err := l.redis.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return infoField(info, "used_memory:")
}

// infoField returns the number that follows a name in the output of INFO.
func infoField(info, name string) (int64, error) {
	_, rest, ok := strings.Cut(info, "\r\n"+name)
	if !ok {
		return 0, fmt.Errorf("INFO has no %s", name)
	}
	digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	return strconv.ParseInt(rest[:max(digits, 0)], 10, 64)
}
