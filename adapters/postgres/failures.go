package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/skeinq/skein/core"
)

// failure is a core.Failure as JSON. The columns named failures have a list of failures, the newest
// first. NULL means no failure.
type failure struct {
	At   core.Instant `json:"at,omitempty"`
	Node string       `json:"node,omitempty"`
	Text string       `json:"text"`
}

// failuresOf returns the column failures of a record.
func failuresOf(failures core.Failures) []failure {
	var list []failure
	for _, f := range failures.Stored() {
		list = append(list, failure(f))
	}
	return list
}

// scannedFailures is where a column failures is scanned.
type scannedFailures struct{ into *core.Failures }

// Scan implements sql.Scanner. A value that is not a list of failures becomes the text of a failure,
// since an error would stop the turns of the whole shard.
func (s scannedFailures) Scan(value any) error {
	*s.into = nil
	var text []byte
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		text = []byte(v)
	case []byte:
		text = v
	default:
		return fmt.Errorf("failures are a %T, not JSON", value)
	}

	var list []failure
	if json.Unmarshal(text, &list) != nil {
		list = []failure{{Text: string(text)}}
	}

	var failures core.Failures
	for _, f := range list {
		failures = append(failures, core.Failure(f))
	}
	*s.into = failures.Stored()
	return nil
}

// shortFailures returns the SQL for the failures of a row e on a page: all of them if most is NULL,
// otherwise only the newest, whose text has at most that number of characters. The text is truncated
// to bytes by [core.Failures.Short].
func shortFailures(most string) string {
	return `CASE WHEN e.failures IS NULL OR ` + most + ` IS NULL THEN e.failures ELSE jsonb_build_array(
    jsonb_set(e.failures->0, '{text}', to_jsonb(left(e.failures->0->>'text', ` + most + `)))
  ) END`
}
