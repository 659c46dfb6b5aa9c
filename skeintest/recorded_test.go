package skeintest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/skeintest"
)

type parcel struct {
	Number  int
	Paid    bool
	At      time.Time
	Lines   []line
	Address *struct{ Street, City string }
}

type line struct{ Item string }

// renamed reads the former name of its field too.
type renamed struct{ Number int }

func (r *renamed) UnmarshalJSON(data []byte) error {
	var both struct{ Number, No *int }
	if err := json.Unmarshal(data, &both); err != nil {
		return err
	}
	for _, number := range []*int{both.No, both.Number} {
		if number != nil {
			r.Number = *number
		}
	}
	return nil
}

func TestLostFieldsAreReported(t *testing.T) {
	parcels := skein.NewQueue("parcels", skein.QueueOptions[parcel]{})
	for recorded, want := range map[string]string{
		`{"Number":0,"Paid":false,"At":"2026-01-01T00:00:00Z","Lines":[{"Item":""}]}`: "",
		`{"number":7}`: "",
		` { "Paid" : true , "Lines" : [ ] , "Address":null,"Other":null,"More":{},"Many":[]}`: "",
		`{"No":7}`:                       "loses No;",
		`{"No":7,"Paid":true,"Sum":"1"}`: "loses No, Sum;",
		`{"Lines":[{"Item":"a","Pieces":2},{"Item":"b"}]}`:               "loses Lines[0].Pieces;",
		`{"Lines":[{"Name":"a"}]}`:                                       "loses Lines;",
		`{"Address":{"Street":"a","Town":{"Name":"b","Zip":[1,2]}}}`:     "loses Address.Town;",
		`{"Address":{"Street":"a","Town":{"Name":"b","Zip":["é\"",2]}}}`: "loses Address.Town;",
		`{"Number":"7"}`: "does not decode it",
		`not JSON`:       "does not decode it",
	} {
		f := newFake(t)
		skeintest.AssertDecodes(f, parcels, `{}`, recorded)
		got := strings.Join(append(f.errors, f.fatals...), "\n")
		named := strings.Contains(got, "recorded payload 2 of queue parcels, ")
		if (got == "") != (want == "") || !strings.Contains(got, want) || want != "" && !named {
			t.Errorf("%s: %q, want %q", recorded, got, want)
		}
	}
}

// Codecs that read the former names, that read everything, or that read no JSON lose nothing.
func TestOtherCodecsLoseNothing(t *testing.T) {
	skeintest.AssertDecodes(t, skein.NewQueue("q", skein.QueueOptions[renamed]{}), `{"No":7}`, `{"Number":7}`, `{"No":0}`)
	skeintest.AssertDecodes(t, skein.NewQueue("q", skein.QueueOptions[map[string]any]{}), `{"No":7,"Sum":[1]}`)
	skeintest.AssertDecodes(t, skein.NewQueue("q", skein.QueueOptions[any]{}), `7`, `"a"`)
	skeintest.AssertDecodes(t, skein.NewQueue("q", skein.QueueOptions[json.RawMessage]{}), `{"No":7}`)
	skeintest.AssertDecodes(t, plain("q", skein.QueueOptions[[]byte]{}), `{"No":7}`, "\x00\xff")
}

func TestAStrictCodecReportsTheField(t *testing.T) {
	f := newFake(t)
	codec := skein.JSONCodec[line]{Strict: true}
	skeintest.AssertDecodes(f, skein.NewQueue("q", skein.QueueOptions[line]{Codec: codec}), `{"Item":"a"}`, `{"Name":"a"}`)
	if len(f.errors) != 1 || !strings.Contains(f.errors[0], `unknown field "Name"`) {
		t.Errorf("%q", f.errors)
	}
	f = newFake(t)
	skeintest.AssertDecodes[line](f, nil, `{}`)
	if len(f.fatals) != 1 {
		t.Errorf("%q", f.fatals)
	}
}
