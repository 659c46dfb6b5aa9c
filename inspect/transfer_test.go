package inspect_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// oddLetters are dead letters that a careless format loses something of, in order of their ids.
func oddLetters() []core.DeadLetter {
	many := core.DeadLetter{ID: "many", ChangedAt: 7, Failures: core.Failures{{Text: "boom"}}, Group: "many"}
	for n := range 2*core.MaxTurnPayloads + 500 {
		many.Payloads = append(many.Payloads, core.Payload{Data: fmt.Appendf(nil, "p%05d", n), Score: float64(n)})
	}

	letters := []core.DeadLetter{
		many,
		{ID: "large", ChangedAt: 8, Group: core.OtherGroup, Payloads: []core.Payload{
			{Data: bytes.Repeat([]byte("l"), 6<<20), Score: 1},
			{Data: bytes.Repeat([]byte("m"), 6<<20), Score: 2, Meta: []byte("last")},
		}},
		{
			ID:        "odd",
			ChangedAt: core.MaxInstant,
			Failures:  core.Failures{{Text: "é\n\"<\u2028"}, {At: 5, Node: "web-1"}, {Text: "older"}, {At: 1}, {Text: "fifth"}},
			Group:     "g<é>",
			Tags:      "<a>\x1fB\x1fé",
			Payloads: []core.Payload{
				{Data: []byte{}, Score: -math.MaxFloat64},
				{Data: []byte("\x00\xff"), Score: math.SmallestNonzeroFloat64, Meta: []byte("\xfe")},
				{Data: []byte("<script>\n"), Score: 0.1, Meta: []byte("a=b")},
				{Data: []byte("é"), Score: 1.7e9 + 1e-6},
			},
		},
	}

	for n, id := range []string{".", "..", "/", "a/b", "%", "{}", strings.Repeat("é", core.MaxIDBytes/2)} {
		letters = append(letters, core.DeadLetter{
			ID:        id,
			ChangedAt: core.Instant(n),
			Failures:  core.Failures{{Text: "e"}},
			Group:     "ids",
			Payloads:  []core.Payload{{Data: []byte("p"), Score: 1}},
		})
	}

	slices.SortFunc(letters, func(a, b core.DeadLetter) int { return strings.Compare(a.ID, b.ID) })
	return letters
}

// sequence is letters as an Export returns them, and then an error if there is one.
func sequence(letters []core.DeadLetter, end error) iter.Seq2[core.DeadLetter, error] {
	return func(yield func(core.DeadLetter, error) bool) {
		for _, d := range letters {
			if !yield(d, nil) {
				return
			}
		}
		if end != nil {
			yield(core.DeadLetter{}, end)
		}
	}
}

func gather(t testing.TB, list iter.Seq2[core.DeadLetter, error]) (letters []core.DeadLetter) {
	t.Helper()
	for d, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		letters = append(letters, d)
	}
	return letters
}

// shortened returns dead letters with digests for large payloads, to compare them by.
func shortened(letters []core.DeadLetter) (short []core.DeadLetter) {
	for _, d := range letters {
		d.Payloads = slices.Clone(d.Payloads)
		for i := range d.Payloads {
			if p := &d.Payloads[i]; len(p.Data) > 100 {
				p.Data = fmt.Appendf(nil, "%d bytes, %x", len(p.Data), sha256.Sum256(p.Data))
			}
		}
		short = append(short, d)
	}
	return short
}

// A morgue goes through a file to another store and is the same there, in a queue with another
// shard count too.
func TestAMorgueMovesByAFile(t *testing.T) {
	letters := oddLetters()
	from, to := newFixture(t), newFixture(t)
	to.declare("moved", 7)
	r, err := from.Import(t.Context(), "orders", sequence(letters, nil), nil)
	if parts := len(letters) + 3; err != nil || r.Handled != parts || r.Done != parts || r.Total != parts {
		t.Fatalf("Import: %+v, %v; want that %d letters and parts are handled", r, err, parts)
	}

	var file bytes.Buffer
	if n, err := inspect.WriteDeadLetters(&file,
		from.Export(t.Context(), "orders", inspect.ListOptions{})); n != len(letters) || err != nil {
		t.Fatalf("%d dead letters were written, %v; want %d", n, err, len(letters))
	}
	if lines := bytes.Count(file.Bytes(), []byte("\n")); lines != len(letters) {
		t.Errorf("the file has %d lines, want one for each of %d", lines, len(letters))
	}

	if r, err = to.Import(t.Context(), "moved", inspect.ReadDeadLetters(&file), nil); err != nil {
		t.Fatalf("Import: %+v, %v", r, err)
	}

	got := gather(t, to.Export(t.Context(), "moved", inspect.ListOptions{}))
	if diff := cmp.Diff(shortened(letters), shortened(got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what has moved (-want +got):\n%.2000s", diff)
	}

	again, err := to.Import(t.Context(), "moved", sequence(letters, nil), nil)
	if err != nil || again.Handled != 0 {
		t.Errorf("a repeated Import: %+v, %v; want that nothing changes", again, err)
	}
	if stats, err := to.Stats(t.Context(), "moved"); err != nil || stats[0].Dead != int64(len(letters)) {
		t.Errorf("the morgue has %+v, %v", stats, err)
	}
}

// An import that ends before its end keeps the dead letters that it has imported, and can be
// repeated from the beginning.
func TestAnImportEndsAtABadLetter(t *testing.T) {
	good := func(id string) core.DeadLetter {
		return core.DeadLetter{
			ID:        id,
			ChangedAt: 5,
			Group:     "g",
			Payloads:  []core.Payload{{Data: []byte("p"), Score: 1}},
		}
	}
	broken := errors.New("the file ends here")
	with := func(change func(*core.DeadLetter)) core.DeadLetter { d := good("bad"); change(&d); return d }

	cases := map[string]struct {
		bad  core.DeadLetter
		end  error
		want error
	}{
		"no id":      {with(func(d *core.DeadLetter) { d.ID = "" }), nil, inspect.ErrInvalidID},
		"no payload": {with(func(d *core.DeadLetter) { d.Payloads = nil }), nil, inspect.ErrInvalidOptions},
		"no score": {
			with(func(d *core.DeadLetter) { d.Payloads[0].Score = math.NaN() }),
			nil,
			core.ErrInvalidScore,
		},
		"no time": {with(func(d *core.DeadLetter) { d.ChangedAt = -1 }), nil, core.ErrInvalidTime},
		"too large": {
			with(func(d *core.DeadLetter) { d.Payloads[0].Meta = make([]byte, core.MaxMetaBytes+1) }),
			nil,
			core.ErrInvalidPayload,
		},
		"an error of theirs": {good("c"), broken, broken},
	}

	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			list := []core.DeadLetter{good("a"), good("b"), tt.bad}
			r, err := s.Import(t.Context(), "orders", sequence(list, tt.end), nil)
			if !errors.Is(err, tt.want) || r.Handled < 2 {
				t.Errorf("Import: %+v, %v; want %v after two are handled", r, err, tt.want)
			}

			if tt.end == nil && !strings.Contains(err.Error(), "dead letter 3") {
				t.Errorf("%q does not say which dead letter", err)
			}
		})
	}
}

// Oddities that an import may meet: an id in two of its letters, and an error or group that is too
// long.
func TestAnImportUnitesAndCuts(t *testing.T) {
	s := newFixture(t)
	long := strings.Repeat("é", core.MaxErrorBytes)
	payload := func(data string, score float64) []core.Payload {
		return []core.Payload{{Data: []byte(data), Score: score}}
	}

	letters := []core.DeadLetter{
		{ID: "a", ChangedAt: 1, Failures: core.Failures{{Text: "first"}}, Group: "g", Payloads: payload("p", 2)},
		{
			ID:        "a",
			ChangedAt: 3,
			Failures:  core.Failures{{Text: long}},
			Group:     long,
			Payloads:  slices.Concat(payload("q", 5), payload("p", 1), payload("q", 4)),
		},
		{ID: "a", ChangedAt: 2, Failures: core.Failures{{Text: "late"}}, Group: "h", Payloads: payload("r", 3)},
	}

	if r, err := s.Import(t.Context(), "orders", sequence(letters, nil), nil); err != nil || r.Handled != 3 {
		t.Fatalf("Import: %+v, %v", r, err)
	}

	want := []core.DeadLetter{{
		ID: "a", ChangedAt: 3, Failures: core.Failures{{Text: core.ErrorText(long)}}, Group: core.GroupName(long),
		Payloads: slices.Concat(payload("p", 1), payload("r", 3), payload("q", 4)),
	}}
	if diff := cmp.Diff(want,
		gather(t, s.Export(t.Context(), "orders", inspect.ListOptions{})), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the morgue (-want +got):\n%.2000s", diff)
	}
}

func TestImportRefusesWhatItCannotDo(t *testing.T) {
	s := newFixture(t)
	one := sequence(oddLetters()[:1], nil)
	if _, err := s.Import(t.Context(), "unknown", one, nil); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("into an unknown queue: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Import(ctx, "orders", one, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}

// Options choose the exported letters, as they choose the listed ones.
func TestExportTakesTheOptionsOfAList(t *testing.T) {
	s := newFixture(t)
	var letters []core.DeadLetter
	for n, id := range []string{"a-1", "a-2", "b-1"} {
		letters = append(letters, core.DeadLetter{
			ID:        id,
			ChangedAt: core.Instant(n),
			Group:     id[:1],
			Payloads:  []core.Payload{{Data: []byte("p"), Score: 1}},
		})
	}
	if _, err := s.Import(t.Context(), "orders", sequence(letters, nil), nil); err != nil {
		t.Fatal(err)
	}

	for name, tt := range map[string]struct {
		o    inspect.ListOptions
		want []core.DeadLetter
	}{
		"all":      {inspect.ListOptions{}, letters},
		"a prefix": {inspect.ListOptions{SortBy: inspect.ByID, Prefix: "a-"}, letters[:2]},
		"a group":  {inspect.ListOptions{Group: "b"}, letters[2:]},
		"a limit":  {inspect.ListOptions{Limit: 1}, letters[:1]},
	} {
		if diff := cmp.Diff(tt.want,
			gather(t, s.Export(t.Context(), "orders", tt.o)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLinesThatAreNoDeadLetter(t *testing.T) {
	const good = `{"id":"a","changed_at_us":1,"payloads":[{"score":1,"data":"p"}]}`
	for name, bad := range map[string]string{
		"no JSON":          `{"id":`,
		"another type":     `{"id":1}`,
		"another field":    `{"id":"a","perform_at":1}`,
		"two in a line":    good + good,
		"data twice":       `{"id":"a","payloads":[{"score":1,"data":"p","data_base64":"cA=="}]}`,
		"meta twice":       `{"id":"a","payloads":[{"score":1,"meta":"p","meta_base64":"cA=="}]}`,
		"no Base64":        `{"id":"a","payloads":[{"score":1,"data_base64":"%"}]}`,
		"bytes":            "{\"id\":\"a\",\"payloads\":[{\"score\":1,\"data\":\"\xff\"}]}",
		"a score too high": `{"id":"a","payloads":[{"score":1e999}]}`,
	} {
		read := 0
		var last error
		for _, last = range inspect.ReadDeadLetters(strings.NewReader(good + "\n\n" + bad + "\n" + good + "\n")) {
			read++
		}
		if read != 2 || !errors.Is(last, inspect.ErrInvalidLine) || !strings.Contains(last.Error(), "line 3") {
			t.Errorf("%s: %d were read, the last with %v; want that line 3 is invalid", name, read, last)
		}
	}

	if got := gather(t, inspect.ReadDeadLetters(strings.NewReader(good))); len(got) != 1 {
		t.Errorf("%d were read of a file that does not end its line, want one", len(got))
	}
}

// Dead letters that are read are written as they are read again.
func FuzzReadDeadLetters(f *testing.F) {
	f.Add(
		[]byte(
			`{"id":"a","changed_at_us":1,"error":"e","group":"g","payloads":[{"score":1.5,"data":"p","meta":"m"},{"score":2,"data_base64":"/w=="}]}`,
		),
	)
	f.Add([]byte("{}\n{\"id\":\"\\u0000\"}\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		var letters []core.DeadLetter
		for d, err := range inspect.ReadDeadLetters(bytes.NewReader(file)) {
			if err != nil {
				break
			}
			for i := range d.Payloads {
				d.Payloads[i].Score = core.NormalScore(d.Payloads[i].Score)
			}
			letters = append(letters, d)
		}

		var out bytes.Buffer
		if _, err := inspect.WriteDeadLetters(&out, sequence(letters, nil)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(letters, gather(t, inspect.ReadDeadLetters(&out)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}
