package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
)

// column is a column of the records that the store reads: its name, the SQL that returns it from a
// row e, and where it is scanned. The list of a SELECT and the destinations of its rows are made of
// the same columns, and rows are scanned by the names of their columns.
//
// In the SQL, $1 is the largest number of payloads to return, {counted} the number of payloads to
// count to, or NULL for all, {failures} the failures of e, and {now} the parameter for the clock.
type column struct {
	name string
	sql  string
	into any
}

// record is a queued job, a claim or a dead letter as it is read.
type record interface {
	// columns returns the record's columns. They are scanned into this record.
	columns() []column
	// finish completes the record of a queue once it is scanned. It truncates the error to errorBytes
	// as [core.CutText] does.
	finish(queue string, errorBytes int) error
	// id returns the id of the record.
	id() string
}

// selectList returns the columns as the list of a SELECT. Their names get a prefix.
func selectList(prefix string, columns []column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.sql + " AS " + prefix + c.name
	}
	return strings.Join(list, ",\n  ")
}

// destinations returns where the rows of a result are scanned: for each of its columns that of the
// column with this name behind the prefix. Other columns of the result are not scanned.
func destinations(rows pgx.Rows, prefix string, columns []column) []any {
	fields := rows.FieldDescriptions()
	list := make([]any, len(fields))

	for i, f := range fields {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			continue
		}
		for _, c := range columns {
			if c.name == name {
				list[i] = c.into
			}
		}
	}
	return list
}

// payloadLists are the payloads of a record, as parallel lists.
type payloadLists struct {
	scores     []float64
	data, meta [][]byte
}

// columns returns the columns of the lists, read from a row m.
func (p *payloadLists) columns() []column {
	return []column{
		{"scores", "m.scores", &p.scores},
		{"data", "m.data", &p.data},
		{"meta", "m.meta", &p.meta},
	}
}

// payloads joins the lists. meta may be shorter.
func (p *payloadLists) payloads() ([]core.Payload, error) {
	if len(p.scores) != len(p.data) {
		return nil, fmt.Errorf("%d scores of %d payloads", len(p.scores), len(p.data))
	}
	var payloads []core.Payload
	for i, d := range p.data {
		payload := core.Payload{Data: d, Score: p.scores[i]}
		if i < len(p.meta) {
			payload.Meta = p.meta[i]
		}
		payloads = append(payloads, payload)
	}
	return payloads, nil
}
