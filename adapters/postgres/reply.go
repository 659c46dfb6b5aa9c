package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// reply is the reply to an acquire or a turn, as rows of the SQL type reply.
type reply struct {
	header header
	claims []core.Claim
}

// header has the members of a reply's headers, by name. Each header sets some of them.
type header struct {
	Status     status       `json:"status"`
	Paused     bool         `json:"paused"`
	Last       int64        `json:"last"`
	Now        core.Instant `json:"now"`
	Remaining  int64        `json:"remaining"` // in microseconds
	Head       *int64       `json:"head"`      // nil if the shard can never give a job
	LeaseToken int64        `json:"lease_token"`
	LeaseOwner string       `json:"lease_owner"`

	Cancellations []cancellation `json:"cancellations"`

	// Places of the request, from 1.
	Skipped      []int32 `json:"skipped"`
	Deferred     []int32 `json:"deferred"`
	SkippedParts []int32 `json:"skipped_parts"`
	NotBegun     []int32 `json:"not_begun"`
}

// cancellation is a cancelled claim. Drop is whether the job is dropped when it ends.
type cancellation struct {
	ID     string `json:"id"`
	Token  int64  `json:"token"`
	Number int64  `json:"number"`
	Drop   bool   `json:"drop"`
}

func (h *header) cancellations() (list []ports.Cancellation) {
	for _, c := range h.Cancellations {
		list = append(list,
			ports.Cancellation{ID: c.ID, Receipt: core.Receipt{Token: c.Token, Number: c.Number}, Drop: c.Drop})
	}
	return list
}

// read reads a whole reply, from the beginning if it is called again.
func (r *reply) read(rows pgx.Rows) error {
	*r = reply{}
	var (
		text   []byte
		row    claimRow
		header = destinations(rows, "", []column{{name: "header", into: &text}})
		claim  = destinations(rows, "", row.columns())
		at     = slices.IndexFunc(header, func(into any) bool { return into != nil })
	)
	if at < 0 { // an error came instead of a result
		return nil
	}

	for rows.Next() {
		if rows.RawValues()[at] == nil {
			row = claimRow{}
			if err := rows.Scan(claim...); err != nil {
				return err
			}
			r.claims = append(r.claims, row.whole())
			continue
		}

		if err := rows.Scan(header...); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &r.header); err != nil {
			return fmt.Errorf("the header of a reply: %w", err)
		}
	}
	return nil
}

// claimRow is a row of the table claimed with all payloads of the job.
type claimRow struct {
	core.Claim
	begun              *bool
	first              core.Payload
	moreScores         []float64
	moreData, moreMeta [][]byte
}

// columns returns the columns that a reply has, as the table has them.
func (c *claimRow) columns() []column {
	return append(claimColumns(&c.Claim),
		column{name: "begun", into: &c.begun},
		column{name: "score", into: &c.first.Score},
		column{name: "data", into: &c.first.Data},
		column{name: "meta", into: &c.first.Meta},
		column{name: "more_scores", into: &c.moreScores},
		column{name: "more_data", into: &c.moreData},
		column{name: "more_meta", into: &c.moreMeta},
	)
}

// whole returns the row as a claim.
func (c *claimRow) whole() core.Claim {
	c.Begun = c.begun != nil && *c.begun
	c.Payloads = make([]core.Payload, 1, 1+len(c.moreData))
	c.Payloads[0] = c.first
	for i, data := range c.moreData {
		c.Payloads = append(c.Payloads, core.Payload{Data: data, Score: c.moreScores[i], Meta: c.moreMeta[i]})
	}
	return c.Claim
}

// newHead returns a head as functions return it, with NULL for none.
func newHead(due *int64) core.Head {
	if due == nil {
		return core.Head{}
	}
	return core.Head{Due: core.Instant(*due), OK: true}
}

func sortClaims(list []core.Claim, order func(a, b core.Claim) int) { slices.SortFunc(list, order) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
