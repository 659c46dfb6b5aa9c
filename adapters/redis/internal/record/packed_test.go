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
		{"tags", core.Payload{Data: []byte("p"), Score: 1}, "a\x1fb", 25},
		{"tags and meta", core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("trace")}, "a", 30},
		{"meta", core.Payload{Data: []byte("p"), Score: 1, Meta: []byte("trace")}, "", 15},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec := AppendPacked(nil, &tt.payload, tt.tags)
			if got := len(rec) - len(tt.payload.Data); got != tt.header {
				t.Errorf("the header has %d bytes, want %d", got, tt.header)
			}

			s := decoder{rest: string(rec)}
			got, err := s.job("a", 5)
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

func TestRecordsAreReadWhole(t *testing.T) {
	full := core.Job{
		ID: "a",
		Payloads: []core.Payload{
			{Data: []byte("p"), Score: -1.5},
			{Data: []byte{}, Score: 2, Meta: []byte("m")},
		},
		State: core.State{PerformAt: 9, FirstPush: 7, RetryCount: 3, Recoveries: 2, Error: "boom"},
	}

	text := "\x38" + "\x00\x00\x00\x00\x00\x00\x00\x07" + // first
		"\x00\x00\x00\x03\x00\x00\x00\x02\x00\x00\x00\x04boom" +
		"\x00\x00\x00\x02" +
		"\xbf\xf8\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x01\x00\x00p" +
		"\x40\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x01m"

	s := decoder{rest: text}
	got, err := s.job("a", 9)
	if diff := cmp.Diff(full, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}

	for n := range len(text) {
		s := decoder{rest: text[:n]}
		if _, err := s.job("a", 9); !errors.Is(err, ErrStored) {
			t.Errorf("cut to %d bytes: error %v, want %v", n, err, ErrStored)
		}
	}
}

func TestClaimIsRead(t *testing.T) {
	r := ports.TurnRequest{Lease: ports.Lease{Owner: "owner"}, Node: "n"}
	text, err := Claimer(&r)
	if err != nil {
		t.Fatal(err)
	}

	receipt := core.Receipt{Token: 1 << 52, Number: 7}
	tests := []struct {
		name    string
		claimer string
		begun   bool
	}{
		{"not begun", text, false},
		{"begun", text, true},
		// Its since had 8 bytes, the first of them 0: not begun.
		{"of an earlier snapshot, with the number of a lane and no mark", "\x00\x09\x05owner\x01n\x05", false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stored := string(ReceiptText(receipt)) +
				map[bool]string{false: "\x00", true: "\x01"}[tt.begun] +
				"\x00\x00\x00\x00\x00\x00\x05" + tt.claimer +
				"\x00\x00\x00\x00\x00\x00\x00\x04" +
				string(AppendPacked(nil, &core.Payload{Data: []byte("p"), Score: 1}, ""))
			got, err := ParseClaim("a", stored)
			if err != nil {
				t.Fatal(err)
			}

			want := ports.ClaimView{
				Claim: core.Claim{Receipt: receipt, Begun: tt.begun, Job: core.Job{
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
