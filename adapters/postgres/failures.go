package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/skeinq/skein/core"
)

// failure is a core.Failure as JSON. The columns named failures have a list of failures, the newest
// first. Only the newest is kept today. NULL means no failure.
type failure struct {
	At   core.Instant `json:"at,omitempty"`
	Node string       `json:"node,omitempty"`
	Text string       `json:"text"`
}

// failuresOf returns the list of a record whose last failure is given.
func failuresOf(last core.Failure) []failure {
	f := last.Stored()
	if f == (core.Failure{}) {
		return nil
	}
	return []failure{failure(f)}
}

// newestFailure is where a column failures is scanned.
type newestFailure struct{ into *core.Failure }

// Scan implements sql.Scanner. A value that is not a list of failures becomes the text of a failure,
// since an error would stop the turns of the whole shard.
func (n newestFailure) Scan(value any) error {
	*n.into = core.Failure{}
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
	if len(list) > 0 {
		*n.into = core.Failure(list[0]).Stored()
	}
	return nil
}

// shortFailures returns the SQL for a list with the newest failure of a row e. Its text has at most
// the given number of characters.
func shortFailures(most string) string {
	return `CASE WHEN e.failures IS NOT NULL THEN jsonb_build_array(
    jsonb_set(e.failures->0, '{text}', to_jsonb(left(e.failures->0->>'text', ` + most + `)))
  ) END`
}
