package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cpuTime is the user and system processor time of both sides: of this process, in which the client
// and the server of each system run, and of the database. 0 means unknown.
type cpuTime struct {
	client, database time.Duration
}

// since returns the time spent since an earlier moment.
func (c cpuTime) since(earlier cpuTime) cpuTime {
	return cpuTime{spent(earlier.client, c.client), spent(earlier.database, c.database)}
}

// spent returns the difference of two times, or 0 if one of them is unknown.
func spent(from, to time.Duration) time.Duration {
	if from == 0 || to < from {
		return 0
	}
	return to - from
}

func (c cpuTime) plus(other cpuTime) cpuTime {
	return cpuTime{c.client + other.client, c.database + other.database}
}

// per divides the time by the number of jobs.
func (c cpuTime) per(jobs int) cpuPerJob {
	n := float64(max(1, jobs)) * float64(time.Microsecond)
	return cpuPerJob{float64(c.client) / n, float64(c.database) / n}
}

// cpuPerJob is processor time for each job, in microseconds. 0 is unknown.
type cpuPerJob struct {
	client, database float64
}

func (c cpuPerJob) String() string {
	if c.client == 0 {
		return ""
	}
	if c.database == 0 {
		return figure(c.client) + " + ?"
	}
	return figure(c.client) + " + " + figure(c.database)
}

// meter measures time and processor time from its start.
type meter struct {
	lab   *lab
	cpu   cpuTime
	start time.Time
}

func (l *lab) startMeter(ctx context.Context) *meter {
	cpu := l.cpu(ctx)
	return &meter{lab: l, cpu: cpu, start: time.Now()}
}

// read returns the time spent since the start.
func (m *meter) read(ctx context.Context) (time.Duration, cpuTime) {
	took := time.Since(m.start)
	return took, m.lab.cpu(ctx).since(m.cpu)
}

// cpu returns the time that both sides have spent so far.
func (l *lab) cpu(ctx context.Context) cpuTime {
	c := cpuTime{client: processCPU()}
	switch {
	case l.redis != nil:
		if info, err := l.redis.Info(ctx, "cpu").Result(); err == nil {
			c.database = redisCPU(info)
		}
	case l.postgres != nil:
		c.database = postgresCPU(ctx, l.postgres)
	}
	return c
}

// redisCPU returns the processor time in the reply to INFO, or 0.
func redisCPU(info string) time.Duration {
	var sum time.Duration
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		_, rest, _ := strings.Cut(info, "\r\n"+name+":")
		text, _, _ := strings.Cut(rest, "\r\n")
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum
}

// procStat reads /proc for a process.
type procStat struct {
	name   string
	parent int
	// own and children are processor times: the process's, and that of its
	// children that have ended.
	own, children time.Duration
}

// clockTick is the unit of processor times in /proc.
const clockTick = 10 * time.Millisecond

// parseProcStat reads the text of /proc/PID/stat.
func parseProcStat(text string) (procStat, error) {
	// The name is in brackets and may contain anything.
	_, rest, _ := strings.Cut(text, "(")
	end := strings.LastIndexByte(rest, ')')
	if end < 0 {
		return procStat{}, fmt.Errorf("no process: %q", text)
	}

	const parent, user, last = 1, 11, 14 // counted from the state, which follows the name
	fields := strings.Fields(rest[end+1:])
	if len(fields) <= last {
		return procStat{}, fmt.Errorf("no process: %q", text)
	}

	var ticks [last - user + 1]int64
	for i := range ticks {
		n, err := strconv.ParseInt(fields[user+i], 10, 64)
		if err != nil {
			return procStat{}, err
		}
		ticks[i] = n
	}

	p, err := strconv.Atoi(fields[parent])
	return procStat{
		name: rest[:end], parent: p,
		own:      time.Duration(ticks[0]+ticks[1]) * clockTick,
		children: time.Duration(ticks[2]+ticks[3]) * clockTick,
	}, err
}
