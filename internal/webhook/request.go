package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein"
)

// formatVersion is the version of the body of a request. Fields may be added to a version.
const formatVersion = 1

// request is the body of a request, as JSON.
type request struct {
	Version int    `json:"version"`
	Queue   string `json:"queue"`
	ID      string `json:"id"`
	// Attempt counts the executions of the job from 1, and begins again once its first payload is
	// done or buried. Recoveries is how often the job has lost its worker since it last ended.
	Attempt    int `json:"attempt"`
	Recoveries int `json:"recoveries"`
	// FencingToken is the token of the lease: a receiver may refuse a write with a lower one than it
	// has seen for the id.
	FencingToken int64 `json:"fencing_token"`
	// Deadline is when the worker gives the call up, by its clock. It is zero if it never does.
	Deadline time.Time `json:"deadline,omitzero"`
	Tags     []string  `json:"tags,omitempty"`
	Payloads []payload `json:"payloads"`
}

// payload is one payload: Payload if its bytes are JSON, and DataBase64 otherwise.
type payload struct {
	Payload    json.RawMessage `json:"payload,omitempty"`
	DataBase64 []byte          `json:"data_base64,omitzero"`
	Score      float64         `json:"score"`
	MetaBase64 []byte          `json:"meta_base64,omitempty"`
}

// body returns the body of the request for a job. ctx is the handler's. The store's bounds of a
// claim bound it: at most 1,000 payloads, and several only up to 4 MiB.
func body(ctx context.Context, queue string, job *skein.Job[[]byte]) ([]byte, error) {
	token, _ := skein.Fence(ctx)
	deadline, _ := ctx.Deadline()
	r := request{
		Version:      formatVersion,
		Queue:        queue,
		ID:           job.ID,
		Attempt:      job.Retries + 1,
		Recoveries:   job.Recoveries,
		FencingToken: token,
		Deadline:     deadline.UTC().Truncate(time.Millisecond),
		Tags:         job.Tags,
		Payloads:     make([]payload, len(job.Payloads)),
	}
	for i := range job.Payloads {
		r.Payloads[i] = payloadOf(&job.Payloads[i])
	}

	// Numbers and strings of a payload stay as they were pushed; only white space between them goes.
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&r); err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func payloadOf(p *skein.Payload[[]byte]) payload {
	r := payload{Score: p.Score, MetaBase64: p.Meta}
	if utf8.Valid(p.Value) && json.Valid(p.Value) { // json.Valid alone accepts invalid UTF-8 in strings
		r.Payload = p.Value
	} else {
		r.DataBase64 = append([]byte{}, p.Value...) // not nil: empty bytes are a payload
	}
	return r
}
