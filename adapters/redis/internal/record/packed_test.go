package record

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestRecordOfAPushIsRead(t *testing.T) {
	tests := []struct {
		name    string
		payload core.Payload
		tags    core.Tags
		// header is how many bytes stand before the data.
		header int
	}{
		{"time as score", core.Payload{Data: []byte("p"), Score: 1_800_000_000.123456}, "", 8},
		{"small number", core.Payload{Data: []byte("p"), Score: 7}, "", 8},
		{"0", core.Payload{Data: []byte("p")}, "", 8},
		{"-0", core.Payload{Data: []byte("p"), Score: math.Copysign(0, -1)}, "", 8},
		{"fraction below a microsecond", core.Payload{Data: []byte("p"), Score: 1e-7}, "", 9},
		{"negative", core.Payload{Data: []byte("p"), Score: -1}, "", 9},
		{"largest in micros", core.Payload{Data: []byte("p"), Score: float64(core.MaxInstant / 1e6)}, "", 8},
		{"large", core.Payload{Data: []byte("p"), Score: 1 << 53}, "", 9},
		{"largest", core.Payload{Data: []byte("p"), Score: math.MaxFloat64}, "", 9},
		{"smallest", core.Payload{Data: []byte("p"), Score: math.SmallestNonzeroFloat64}, "", 9},
		{"no data", core.Payload{Score: 1}, "", 8},
		{"tags", core.Payload{Data: []byte("p"), Score: 1}, "a\x1fb", 13},
		{"tags and meta", core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("trace")}, "a", 18},
		{"meta", core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("trace")}, "", 15},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := AppendPushed(nil, &tt.payload, tt.tags)
			if got := len(rec) - len(tt.payload.Data); got != tt.header {
				t.Errorf("the header has %d bytes, want %d", got, tt.header)
			}
			if most := PushedSize(&tt.payload, tt.tags); len(rec) > most {
				t.Errorf("it has %d bytes, and PushedSize is %d", len(rec), most)
			}

			got, err := ParseJob("a", string(rec), 5)
			if err != nil {
				t.Fatal(err)
			}

			entry := core.Entry{When: core.At(5), Tags: tt.tags}
			want := core.Job{ID: "a", Payloads: []core.Payload{tt.payload}, State: entry.State(5)}
			want.Payloads[0].Score = core.NormalScore(tt.payload.Score)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// fullJob is a job with a value in each field, and fullLetter is such a dead letter.
func fullJob() core.Job {
	return core.Job{
		ID: "a",
		Payloads: []core.Payload{
			{Data: []byte("p"), Score: -1.5},
			{Data: []byte{}, Score: 2, Meta: []byte("m")},
		},
		State: core.State{
			PerformAt:  9,
			FirstPush:  7,
			RetryCount: 3,
			Recoveries: 2,
			Failures:   core.Failures{{At: 8, Node: "w", Text: "boom"}, {At: 7}},
			Tags:       "x\x1fy",
			Slot:       "key",
		},
	}
}

func fullLetter() core.DeadLetter {
	j := fullJob()
	return core.DeadLetter{
		ID:        j.ID,
		Payloads:  j.Payloads,
		ChangedAt: 9,
		Failures:  j.Failures,
		Group:     "kind",
		Tags:      j.Tags,
	}
}

// The bytes of a record, which the scripts read and write too.
const (
	fullTags     = "\x00\x03x\x1fy"
	fullSlot     = "\x00\x03key"
	fullFailures = "\x00\x00\x00\x1f" + "\x00\x00\x00\x00\x00\x00\x00\x08" + "\x01w" + "\x00\x00\x00\x04boom" +
		"\x00\x00\x00\x00\x00\x00\x00\x07" + "\x00" + "\x00\x00\x00\x00"
	fullList = "\x00\x00\x00\x02" +
		"\xbf\xf8\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x01\x00\x00p" +
		"\x40\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x01m"
	fullJobText = "\xfb" + "\x00\x00\x00\x00\x00\x00\x00\x07" + fullTags + fullSlot +
		"\x00\x00\x00\x03\x00\x00\x00\x02" + fullFailures + fullList
	fullLetterText = "\x04kind" + "\x33" + fullTags + fullFailures + fullList
)

func TestRecordsHaveTheirBytes(t *testing.T) {
	job, dead := fullJob(), fullLetter()
	if diff := cmp.Diff(fullJobText, string(AppendJob(nil, &job))); diff != "" {
		t.Errorf("the job (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fullLetterText, string(AppendDeadLetter(nil, &dead))); diff != "" {
		t.Errorf("the dead letter (-want +got):\n%s", diff)
	}
}

// A record is read as it was written, and a record that is cut short or continues is refused.
func TestRecordsAreReadWhole(t *testing.T) {
	fresh := core.Job{ID: "a", Payloads: []core.Payload{{Data: []byte("p"), Score: 1}}, State: core.Pushed(core.At(9), 9)}
	for _, job := range []core.Job{fullJob(), fresh} {
		job, dead := job, job.Buried(9)
		read := map[string]func(text string) (any, error){
			"the job":         func(text string) (any, error) { return ParseJob("a", text, 9) },
			"the dead letter": func(text string) (any, error) { return ParseDeadLetter("a", text, 9) },
		}
		for name, written := range map[string]struct {
			value any
			text  []byte
		}{
			"the job":         {job, AppendJob(nil, &job)},
			"the dead letter": {dead, AppendDeadLetter(nil, &dead)},
		} {
			got, err := read[name](string(written.text))
			if diff := cmp.Diff(written.value, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
			}
		}
	}

	for n := range len(fullJobText) {
		if _, err := ParseJob("a", fullJobText[:n], 9); !errors.Is(err, ErrStored) {
			t.Errorf("a job cut to %d bytes: error %v, want %v", n, err, ErrStored)
		}
	}
	for n := range len(fullLetterText) {
		if _, err := ParseDeadLetter("a", fullLetterText[:n], 9); !errors.Is(err, ErrStored) {
			t.Errorf("a dead letter cut to %d bytes: error %v, want %v", n, err, ErrStored)
		}
	}
	if _, err := ParseJob("a", fullJobText+"x", 9); !errors.Is(err, ErrStored) {
		t.Errorf("a job and more: error %v, want %v", err, ErrStored)
	}
}

func TestClaimIsRead(t *testing.T) {
	r := ports.TurnRequest{Lease: ports.Lease{Owner: "owner"}, Node: "n"}
	text, err := Claimer(&r)
	if err != nil {
		t.Fatal(err)
	}

	receipt := core.Receipt{Token: 1 << 52, Number: 7}
	for name, begun := range map[string]bool{"not begun": false, "begun": true} {
		t.Run(name, func(t *testing.T) {
			stored := string(ReceiptText(receipt)) +
				map[bool]string{false: "\x00", true: "\x01"}[begun] +
				"\x00\x00\x00\x00\x00\x00\x05" + text +
				"\x00\x00\x00\x00\x00\x00\x00\x04" +
				string(AppendPushed(nil, &core.Payload{Data: []byte("p"), Score: 1}, ""))
			got, err := ParseClaim("a", stored)
			if err != nil {
				t.Fatal(err)
			}

			want := ports.ClaimView{
				Claim: core.Claim{Receipt: receipt, Begun: begun, Job: core.Job{
					ID: "a", State: core.Pushed(core.At(4), 4), Payloads: []core.Payload{{Data: []byte("p"), Score: 1}},
				}},
				Count: 1, Owner: "owner", Node: "n", Since: 5,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimerOfLongNamesIsRefused(t *testing.T) {
	r := ports.TurnRequest{Node: string(make([]byte, 1<<12))}
	if _, err := Claimer(&r); !errors.Is(err, ports.ErrInvalidRequest) {
		t.Errorf("got %v, want %v", err, ports.ErrInvalidRequest)
	}
}
