package httpapi

import (
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// list is a list as a client reads it, and the types below are its rows, with the fields that tests
// look at.
type list[R any] struct {
	Items     []R       `json:"items"`
	Next      string    `json:"next"`
	Unreached []string  `json:"unreached"`
	AsOf      time.Time `json:"as_of"`
}

type payloadRow struct {
	Score float64 `json:"score"`
	service.Octets
	Meta       *string `json:"meta"`
	MetaBase64 *string `json:"meta_base64"`
}

type jobRow struct {
	inspect.QueuedJob
	Payloads []payloadRow `json:"payloads"`
	Cursor   string       `json:"cursor"`
}

type claimedRow struct {
	jobRow
	Node      string `json:"node"`
	Token     int64  `json:"token"`
	Cancelled bool   `json:"cancelled"`
	Drop      bool   `json:"drop"`
}

type deadRow struct {
	inspect.DeadLetter
	Payloads []payloadRow `json:"payloads"`
	Cursor   string       `json:"cursor"`
}

type foundRow struct {
	Queue   string      `json:"queue"`
	Shard   string      `json:"shard"`
	Queued  *jobRow     `json:"queued"`
	Claimed *claimedRow `json:"claimed"`
	Dead    *deadRow    `json:"dead"`
	Damaged []string    `json:"damaged"`
}

type groupsReply struct {
	Items []struct {
		Group string `json:"group"`
		Name  string `json:"name"`
		Count int64  `json:"count"`
	} `json:"items"`
	Total int       `json:"total"`
	Dead  int64     `json:"dead"`
	AsOf  time.Time `json:"as_of"`
}

type queueRow struct {
	Name  string `json:"name"`
	Merge string `json:"merge"`
}

type historyRow struct {
	At        time.Time `json:"at"`
	Processed uint64    `json:"processed"`
}

type nodeRow struct {
	Name       string                 `json:"name"`
	State      string                 `json:"state"`
	LastChance *service.LastChanceRow `json:"last_chance"`
}

type auditRow struct {
	service.AuditRow
	Took float64 `json:"took_seconds"`
}

type scheduleRow struct {
	service.ScheduleRow
	Shard         string      `json:"shard"`
	Late          float64     `json:"late_seconds"`
	Jitter        float64     `json:"jitter_seconds"`
	CatchupWithin float64     `json:"catchup_within_seconds"`
	Payload       *payloadRow `json:"payload"`
	Recent        []struct {
		At      time.Time `json:"at"`
		Outcome string    `json:"outcome"`
		Late    float64   `json:"late_seconds"`
	} `json:"recent"`
	NextTicks []service.NextTick `json:"next_ticks"`
}

type scheduleNameRow struct {
	Name  string      `json:"name"`
	Count int64       `json:"count"`
	First scheduleRow `json:"first"`
}

type bulkReply struct {
	service.BulkReply
	Dead []deadRow `json:"dead"`
}

type whyReply struct {
	service.WhyReply
	Found     foundRow      `json:"found"`
	Schedules []scheduleRow `json:"schedules"`
}
