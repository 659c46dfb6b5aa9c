package vectors

import (
	"encoding/json"
	"time"
)

// Once is a case of once.json: pushes to a queue, one after another, and which of them are repeats.
type Once struct {
	About string
	// Stamped is true if the queue puts on the stamp of every.
	Stamped bool
	Pushes  []OncePush
	// Repeats are the positions in Pushes of the repeats.
	Repeats []int
}

// OncePush is a push of one entry, written as [seconds, id, bytes, seconds of OnceIn].
type OncePush struct {
	// At is the time since the first push.
	At       time.Duration
	ID, Data string
	OnceIn   time.Duration
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *OncePush) UnmarshalJSON(text []byte) error {
	var at, once int64
	err := json.Unmarshal(text, &[]any{&at, &p.ID, &p.Data, &once})
	p.At, p.OnceIn = time.Duration(at)*time.Second, time.Duration(once)*time.Second
	return err
}
