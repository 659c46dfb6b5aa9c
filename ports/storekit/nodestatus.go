package storekit

import (
	"encoding/json"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// nodeStatus is the status of a server as stores keep it: JSON, which people can read. Unknown
// fields are ignored, and missing fields are zero, so that a program can read the status that
// another version has written.
type nodeStatus struct {
	Shards     int           `json:"shards"`
	Running    int           `json:"running"`
	Busy       int           `json:"busy"`
	Claimed    int           `json:"claimed"`
	Memory     int64         `json:"memory,omitempty"`
	Goroutines int           `json:"goroutines,omitempty"`
	StartedAt  core.Instant  `json:"started,omitempty"`
	ClockAhead int64         `json:"clock_ahead_us,omitempty"`
	Queues     []queueStatus `json:"queues,omitempty"`
	Longest    []runningJob  `json:"longest,omitempty"`
	LastChance *lastChance   `json:"last_chance,omitempty"`
}

type queueStatus struct {
	Queue         string         `json:"queue"`
	Merge         core.MergeRule `json:"merge,omitzero"`
	MaxRetries    int            `json:"max_retries"`
	MaxRecoveries int            `json:"max_recoveries,omitempty"`
	MaxRunning    int            `json:"max_running,omitempty"`
	MaxLanes      int            `json:"max_lanes,omitempty"`
	Parallel      int            `json:"parallel,omitempty"`
	BatchSize     int            `json:"batch_size,omitempty"`
	Rate          string         `json:"rate,omitempty"`
	Shards        int            `json:"shards"`
	Running       int            `json:"running"`
	Busy          int            `json:"busy"`
	Claimed       int            `json:"claimed"`
	LaneBusy      []int          `json:"lane_busy,omitempty"`

	Code            map[string]string `json:"code,omitempty"`
	SettingsVersion int64             `json:"settings_version,omitempty"`
}

type runningJob struct {
	Queue  string       `json:"queue"`
	Shard  int          `json:"shard"`
	ID     string       `json:"id"`
	Token  int64        `json:"token"`
	Number int64        `json:"number"`
	Began  core.Instant `json:"began"`
}

type lastChance struct {
	Queue string `json:"queue"`
	Shard int    `json:"shard"`
	ID    string `json:"id"`
}

// EncodeNodeStatus returns a server's status as a text for [DecodeNodeStatus].
func EncodeNodeStatus(s *ports.NodeStatus) (string, error) {
	stored := nodeStatus{
		Shards:     s.Shards,
		Running:    s.Running,
		Busy:       s.Busy,
		Claimed:    s.Claimed,
		Memory:     s.Memory,
		Goroutines: s.Goroutines,
		StartedAt:  s.StartedAt,
		ClockAhead: s.ClockAhead.Microseconds(),
	}

	for _, q := range s.Queues {
		stored.Queues = append(stored.Queues, queueStatus(q))
	}
	for _, j := range s.Longest {
		stored.Longest = append(stored.Longest, runningJob{
			Queue:  j.Shard.Queue,
			Shard:  j.Shard.Index,
			ID:     j.ID,
			Token:  j.Receipt.Token,
			Number: j.Receipt.Number,
			Began:  j.Began,
		})
	}

	if c := s.LastChance; c != (ports.LastChance{}) {
		stored.LastChance = &lastChance{Queue: c.Shard.Queue, Shard: c.Shard.Index, ID: c.ID}
	}

	text, err := json.Marshal(stored)
	return string(text), err
}

// DecodeNodeStatus decodes a text of [EncodeNodeStatus], of this version of the package or another.
func DecodeNodeStatus(text string) (ports.NodeStatus, error) {
	var stored nodeStatus
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return ports.NodeStatus{}, err
	}

	s := ports.NodeStatus{
		Shards:     stored.Shards,
		Running:    stored.Running,
		Busy:       stored.Busy,
		Claimed:    stored.Claimed,
		Memory:     stored.Memory,
		Goroutines: stored.Goroutines,
		StartedAt:  stored.StartedAt,
		ClockAhead: time.Duration(stored.ClockAhead) * time.Microsecond,
	}

	for _, q := range stored.Queues {
		s.Queues = append(s.Queues, ports.QueueStatus(q))
	}
	for _, j := range stored.Longest {
		s.Longest = append(s.Longest, ports.RunningJob{
			Shard: core.Shard{Queue: j.Queue, Index: j.Shard}, ID: j.ID,
			Receipt: core.Receipt{Token: j.Token, Number: j.Number}, Began: j.Began,
		})
	}

	if c := stored.LastChance; c != nil {
		s.LastChance = ports.LastChance{Shard: core.Shard{Queue: c.Queue, Index: c.Shard}, ID: c.ID}
	}

	return s, nil
}
