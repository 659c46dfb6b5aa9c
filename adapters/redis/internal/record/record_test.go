package record

import (
	"testing"

	"github.com/skeinq/skein/core"
)

// FuzzStored checks that the readers of stored values do not panic, and return a job or an error.
func FuzzStored(f *testing.F) {
	f.Add(AppendPushed(nil, &core.Payload{Data: []byte("p"), Score: 1.5, Meta: []byte("m")}, ""))
	f.Add([]byte("\x03\x00\x00\x00\x01\x3f\xf0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00p"))
	f.Add([]byte("\x7a"))
	f.Add([]byte(fullJobText))
	f.Add([]byte(fullLetterText))

	f.Fuzz(func(t *testing.T, rec []byte) {
		if job, err := ParseJob("a", string(rec), 1); err == nil && job.ID != "a" {
			t.Errorf("got the job %q", job.ID)
		}
		if d, err := ParseDeadLetter("a", string(rec), 1); err == nil && d.ID != "a" {
			t.Errorf("got the dead letter %q", d.ID)
		}
		if v, err := ParseClaim("a", string(rec)); err == nil && v.Count != len(v.Payloads) {
			t.Errorf("count %d of %d payloads", v.Count, len(v.Payloads))
		}
		if c, err := parseCancel("a", string(rec)); err == nil && len(rec) != receiptBytes+1 {
			t.Errorf("%d bytes are a cancel: %v", len(rec), c)
		}
	})
}
