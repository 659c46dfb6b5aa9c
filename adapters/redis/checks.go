package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/ports"
)

// The values from which on a check warns or fails.
const (
	memoryWarns  = 80 // per cent of maxmemory
	memoryFails  = 95
	clientsWarn  = 80 // per cent of maxclients
	lagWarns     = 10 // seconds
	slowCommand  = 10 * time.Millisecond
	slowSince    = time.Hour
	slowCommands = 128 // the newest ones that are read
)

// checkPatience is how long the check of a server may take once another was checked. It is also how
// long Check waits for the check of a Cluster at first use, and for the records.
const checkPatience = time.Second

// Check implements [ports.Checker]. It queries each master of a Cluster with INFO, CONFIG GET,
// SLOWLOG GET, CLUSTER INFO and a script that writes nothing, and reads the records of queues and
// shards. A command that the user may not run leads to CheckUnknown. A master that does not answer
// while others do has a row about that.
func (s *Store) Check(ctx context.Context) ([]ports.Check, error) {
	if err := s.checkClient(); err != nil {
		return nil, err
	}

	if s.link.OnCluster() {
		return s.checkCluster(ctx)
	}

	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := s.lookAtAll(ctx, []goredis.UniversalClient{s.client})
	if err != nil || rows[0].Status != ports.CheckOK {
		return rows, err
	}
	return append(rows, s.recordsRow(ctx)), nil
}

// checkCluster checks the masters at the same time as it checks the Cluster and reads the records.
// Both may need a hanging master, which gets a row here.
func (s *Store) checkCluster(ctx context.Context) ([]ports.Check, error) {
	usable := make(chan error, 1)
	s.link.Workers.Do(func() { usable <- s.ready(ctx) })
	records := make(chan ports.Check, 1)
	s.link.Workers.Do(func() { records <- s.recordsRow(ctx) })

	masters, err := s.link.Masters(ctx)
	if err != nil {
		return nil, exchange.Translate(ctx, err)
	}
	if len(masters) == 0 {
		return []ports.Check{{
			Name:    "cluster",
			Status:  ports.CheckFail,
			Refuses: true,
			Value:   "no server has a slot",
			Advice: "assign all slots to the masters, as redis-cli --cluster create does; " +
				"if they had slots before, see CLUSTER NODES",
		}}, nil
	}

	rows, err := s.lookAtAll(ctx, masters)
	if err != nil {
		return nil, err
	}

	select {
	case err = <-usable:
	case <-time.After(exchange.Patience(ctx, checkPatience)):
	}
	if errors.Is(err, ports.ErrUnusable) {
		return nil, err
	}
	return append(rows, <-records), nil
}

// lookAtAll looks at all servers at once, and returns the rows in order of their addresses.
func (s *Store) lookAtAll(ctx context.Context, servers []goredis.UniversalClient) ([]ports.Check, error) {
	servers = slices.SortedFunc(slices.Values(servers), func(a, b goredis.UniversalClient) int {
		return cmp.Compare(serverAddress(a), serverAddress(b))
	})

	type looked struct {
		at   int
		rows []ports.Check
	}
	rows := make([][]ports.Check, len(servers))
	looks := make([]func(func(looked)), len(servers))
	for i, server := range servers {
		rows[i] = silent(serverAddress(server), "no, but another server answers")
		looks[i] = func(report func(looked)) { report(looked{i, lookAt(ctx, server)}) }
	}

	err := exchange.Together(ctx, s.link.Workers, checkPatience, looks, func(l looked) (bool, error) {
		rows[l.at] = l.rows
		return l.rows[0].Status == ports.CheckOK, nil
	})
	if err != nil && err != exchange.ErrStraggler {
		return nil, err
	}
	return slices.Concat(rows...), nil
}

// silent is the row of a server that does not answer.
func silent(addr, why string) []ports.Check {
	return []ports.Check{{
		Name:    "answers",
		Server:  addr,
		Status:  ports.CheckFail,
		Refuses: true,
		Value:   why,
		Advice: "start the server; if it runs, check that this process can reach it and may run INFO, " +
			"then look at its log and its machine",
	}}
}

// lookAt checks one server. If the server does not answer, the result is one row that states this.
func lookAt(ctx context.Context, server goredis.UniversalClient) []ports.Check {
	addr := serverAddress(server)
	text, err := server.Info(ctx, "everything").Result()
	if err != nil {
		return silent(addr, err.Error())
	}

	f := parseInfo(text)
	rows := []ports.Check{
		{Name: "answers", Value: "yes"},
		f.version(),
		writesRow(ctx, server),
		policyRow(ctx, server),
		f.memory(),
		f.appendOnly(),
		f.snapshots(),
		f.lag(),
		slowRow(ctx, server),
		f.evicted(),
		f.clients(),
	}
	if f["cluster_enabled"] == "1" {
		rows = append(rows, clusterRow(ctx, server), coverageRow(ctx, server))
	}

	for i := range rows {
		rows[i].Server = addr
	}
	return rows
}

func (f info) version() ports.Check {
	name, version := "redis", f["redis_version"]
	if v := f["valkey_version"]; v != "" {
		name, version = "valkey", v
	}
	return ports.Check{
		Name: "version",
		Value: fmt.Sprintf("%s %s, up for %s",
			name, version, uptime(time.Duration(f.int("uptime_in_seconds"))*time.Second)),
	}
}

// uptime is how long a server has run: in days, or on the first day in hours and minutes.
func uptime(up time.Duration) string {
	switch days := int(up / (24 * time.Hour)); days {
	case 0:
		return fmt.Sprintf("%dh%dm", int(up.Hours()), int(up.Minutes())%60)
	case 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", days)
	}
}

// checkRow is a check that warns or fails from certain values on.
func checkRow(name, value string, status ports.CheckStatus, advice string) ports.Check {
	if status == ports.CheckOK {
		advice = ""
	}
	return ports.Check{Name: name, Status: status, Value: value, Advice: advice}
}

// when returns status if the condition holds, otherwise CheckOK.
func when(holds bool, status ports.CheckStatus) ports.CheckStatus {
	if holds {
		return status
	}
	return ports.CheckOK
}

func (f info) memory() ports.Check {
	used, peak, most := f.int("used_memory"), f.int("used_memory_peak"), f.int("maxmemory")
	if most == 0 {
		return checkRow(
			"memory",
			fmt.Sprintf("%s used, %s at its peak, no maxmemory", size(used), size(peak)),
			ports.CheckWarn,
			"set maxmemory below the machine's memory: then a full Redis refuses pushes; "+
				"without it the operating system kills Redis",
		)
	}

	share := used * 100 / most
	return checkRow(
		"memory",
		fmt.Sprintf("%s used of %s, %d %%, %s at its peak", size(used), size(most), share, size(peak)),
		max(when(share >= memoryWarns, ports.CheckWarn), when(share >= memoryFails, ports.CheckFail)),
		"let servers work off the queues, remove dead letters (skein morgue rm), "+
			"or raise maxmemory: a full Redis refuses pushes",
	)
}

func (f info) appendOnly() ports.Check {
	if f["aof_enabled"] != "1" {
		return checkRow(
			"append_only",
			"off",
			ports.CheckWarn,
			"run CONFIG SET appendonly yes on the running server, and change redis.conf only afterwards: "+
				"a server that is restarted with appendonly yes first ignores its snapshot and starts empty; "+
				"without appendonly a crash loses all pushes since the last snapshot",
		)
	}

	written := f["aof_last_write_status"]
	return checkRow("append_only", "on, last write "+written, when(written != "ok", ports.CheckFail),
		"free space on the disk: Redis can't write its append-only file, and refuses all writes")
}

func (f info) snapshots() ports.Check {
	last := f["rdb_last_bgsave_status"]
	return checkRow("snapshots", "last "+last, when(last != "ok", ports.CheckFail),
		"look at Redis's log, and free disk space or memory: "+
			"with stop-writes-on-bgsave-error, the default, Redis refuses all writes until a snapshot succeeds")
}

func (f info) lag() ports.Check {
	lags := f.replicas()
	if len(lags) == 0 {
		return checkRow("replicas", "none", ports.CheckOK, "")
	}

	var late []string
	for addr, lag := range lags {
		if lag >= lagWarns {
			late = append(late, fmt.Sprintf("%s lags by %d s", addr, lag))
		}
	}
	slices.Sort(late)

	value := fmt.Sprintf("%d", len(lags))
	if len(late) > 0 {
		value += ": " + strings.Join(late, ", ")
	}
	return checkRow(
		"replicas",
		value,
		when(len(late) > 0, ports.CheckWarn),
		"check the network and the replica's disk: a failover would lose the writes that the replica has not received",
	)
}

func (f info) evicted() ports.Check {
	n := f.int("evicted_keys")
	return checkRow("evicted_keys", fmt.Sprint(n), when(n > 0, ports.CheckFail),
		"set maxmemory-policy to noeviction: Redis has evicted keys since its start, "+
			"which may have been jobs or leases")
}

func (f info) clients() ports.Check {
	n, most := f.int("connected_clients"), f.int("maxclients")
	share := n * 100 / max(1, most)
	return checkRow(
		"clients",
		fmt.Sprintf("%d of %d", n, most),
		when(most > 0 && share >= clientsWarn, ports.CheckWarn),
		"raise maxclients, or make the pools smaller",
	)
}

// unknown is a check of a value that the server did not report.
func unknown(name string, err error) ports.Check {
	return ports.Check{
		Name:   name,
		Status: ports.CheckUnknown,
		Value:  err.Error(),
		Advice: "grant the user this command, or check the setting by hand",
	}
}

func policyRow(ctx context.Context, server goredis.UniversalClient) ports.Check {
	const name = "maxmemory_policy"
	config, err := server.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		return unknown(name, err)
	}

	policy := config["maxmemory-policy"]
	return checkRow(
		name,
		policy,
		max(
			when(strings.HasPrefix(policy, "volatile-"), ports.CheckWarn),
			when(strings.HasPrefix(policy, "allkeys-"), ports.CheckFail),
		),
		"set it to noeviction: another policy may evict keys that jobs need",
	)
}

func slowRow(ctx context.Context, server goredis.UniversalClient) ports.Check {
	const name = "slow_commands"
	log, err := server.SlowLogGet(ctx, slowCommands).Result()
	if err != nil {
		return unknown(name, err)
	}

	slow, worst, since := 0, time.Duration(0), time.Now().Add(-slowSince)
	for _, command := range log {
		if command.Duration >= slowCommand && command.Time.After(since) {
			slow, worst = slow+1, max(worst, command.Duration)
		}
	}

	value := fmt.Sprintf("%d of %v or longer within %v", slow, slowCommand, slowSince)
	if slow > 0 {
		value += fmt.Sprintf(", the longest %v", worst)
	}
	return checkRow(
		name,
		value,
		when(slow > 0, ports.CheckWarn),
		"see SLOWLOG GET: all clients wait for a slow command, and leases may expire",
	)
}

// writesProbe is a script without flags, like a push. So a server refuses it for the same reasons
// as a push. It writes nothing.
const writesProbe = "#!lua\nreturn 1"

// refusals are the beginnings of errors with which a server refuses scripts that write, and the
// cures.
var refusals = []struct{ prefix, advice string }{
	{
		"OOM",
		"Redis is full: let servers work off the queues, remove dead letters (skein morgue rm), or raise maxmemory",
	},
	{
		"MISCONF",
		"free space on the disk and look at Redis's log: Redis can't write its snapshot or its append-only file, " +
			"and refuses all writes until it can",
	},
	{"NOREPLICAS", "bring the replicas back, or lower min-replicas-to-write"},
	{"READONLY", "this Redis is a replica: connect to its master, or promote it"},
	{"MASTERDOWN", "this Redis is a replica without its master: connect to the master, or promote the replica"},
	{"LOADING", "wait: Redis is loading its data from the disk"},
}

// writesRow reports whether the server runs scripts that write.
func writesRow(ctx context.Context, server goredis.UniversalClient) ports.Check {
	const name = "writes"
	err := server.Eval(ctx, writesProbe, nil).Err()
	if err == nil {
		return ports.Check{Name: name, Value: "yes"}
	}

	for _, r := range refusals {
		if goredis.HasErrorPrefix(err, r.prefix) {
			return ports.Check{
				Name:    name,
				Status:  ports.CheckFail,
				Value:   strings.TrimSuffix(err.Error(), "."),
				Advice:  r.advice,
				Refuses: true,
			}
		}
	}
	return unknown(name, err)
}

func clusterRow(ctx context.Context, server goredis.UniversalClient) ports.Check {
	const name = "cluster"
	text, err := server.ClusterInfo(ctx).Result()
	if err != nil {
		return unknown(name, err)
	}
	f := parseInfo(text)
	row := checkRow(name, fmt.Sprintf("%s, %s of 16384 slots served", f["cluster_state"], f["cluster_slots_ok"]),
		when(f["cluster_state"] != "ok" || f["cluster_slots_ok"] != "16384", ports.CheckFail),
		"see CLUSTER NODES: shards in slots without a server stand still")
	row.Refuses = row.Status != ports.CheckOK
	return row
}

func coverageRow(ctx context.Context, server goredis.UniversalClient) ports.Check {
	const setting, name = "cluster-require-full-coverage", "cluster_require_full_coverage"
	config, err := server.ConfigGet(ctx, setting).Result()
	if err == nil && config[setting] == "" {
		err = fmt.Errorf("the server did not return its %s", setting)
	}
	if err != nil {
		return unknown(name, err)
	}

	return checkRow(name, config[setting], when(config[setting] != "no", ports.CheckWarn),
		"set "+setting+" no: with yes, the default, "+
			"all queues stand still if one master is down and no replica replaces it within cluster-node-timeout: "+
			"every server then refuses every key (CLUSTERDOWN)")
}
