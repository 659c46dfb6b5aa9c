package storekit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const noon core.Instant = 1_800_014_400_000_000

// drawStats draws statistics with counts of every size.
func drawStats(t *rapid.T) *core.Stats {
	count := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64())
	s := &core.Stats{
		Processed: count.Draw(t, "processed"), Failed: count.Draw(t, "failed"),
		WaitSum: count.Draw(t, "wait sum"), RunSum: count.Draw(t, "run sum"),
		WaitSquares: rapid.Float64().Draw(t, "wait squares"), RunSquares: rapid.Float64().Draw(t, "run squares"),
	}
	for _, h := range []*core.Histogram{&s.Wait, &s.Run} {
		for range rapid.IntRange(0, 5).Draw(t, "buckets") {
			h[rapid.IntRange(0, core.HistogramBuckets-1).Draw(t, "bucket")] = count.Draw(t, "count")
		}
	}
	return s
}

func TestStatsComeBackAsTheyWereEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStats(t)
		s.Processed = max(1, s.Processed)
		encoded := storekit.AppendStats(nil, s)

		h := storekit.NewHistory(ports.HistoryRequest{}, noon)
		if err := h.AddEncoded(noon, encoded); err != nil {
			t.Fatal(err)
		}

		if s.Counted() == 0 {
			return // it has overflowed
		}
		if diff := cmp.Diff([]ports.MinuteStats{{At: noon, Stats: *s}}, h.List()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}

		cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")
		if err := h.AddEncoded(noon, encoded[:cut]); err == nil {
			t.Fatalf("%d of %d bytes are read without an error", cut, len(encoded))
		}
		if err := h.AddEncoded(noon, append(encoded, 0)); err == nil {
			t.Fatal("a byte too many is read without an error")
		}

		if diff := cmp.Diff([]ports.MinuteStats{{At: noon, Stats: *s}}, h.List()); diff != "" {
			t.Fatalf("after records that can't be read (-want +got):\n%s", diff)
		}
	})
}

func TestDamagedStatsAreAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := storekit.NewHistory(ports.HistoryRequest{}, noon)
		_ = h.AddEncoded(noon, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) // it must not panic
	})
	one := storekit.AppendStats(nil, &core.Stats{})
	outside := append(one[:len(one)-2:len(one)-2], core.HistogramBuckets+1, 1, 0, 0)
	if err := storekit.NewHistory(ports.HistoryRequest{}, noon).AddEncoded(noon, outside); err == nil {
		t.Error("a bucket that no histogram has is read without an error")
	}
}

func TestHistorySumsUpSteps(t *testing.T) {
	h := storekit.NewHistory(
		ports.HistoryRequest{From: noon + 1, To: noon.Add(12 * time.Minute), Step: 5 * time.Minute},
		noon.Add(time.Hour),
	)

	for i := range 20 {
		h.Add(noon.Add(time.Duration(i)*time.Minute), &core.Stats{Processed: 1})
	}
	h.Add(noon.Add(time.Minute), &core.Stats{})

	var got []ports.MinuteStats
	for i, n := range []uint64{4, 5, 2} {
		got = append(got, ports.MinuteStats{
			At:    noon.Add(time.Duration(5*i) * time.Minute),
			Stats: core.Stats{Processed: n},
		})
	}

	if diff := cmp.Diff(got, h.List()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHistoryLeavesOutWhatIsTooOld(t *testing.T) {
	now := noon.Add(59 * time.Second)
	h := storekit.NewHistory(ports.HistoryRequest{}, now)
	for _, at := range []core.Instant{
		noon.Add(-ports.HistoryKept - time.Minute), noon.Add(-ports.HistoryKept), noon, noon.Add(time.Hour),
	} {
		h.Add(at, &core.Stats{Failed: 1})
	}
	if got := len(h.List()); got != 3 {
		t.Errorf("%d minutes are listed, want 3", got)
	}
}

func TestTheNewestRecordsAreStored(t *testing.T) {
	record := func(queue string, minutes int, counted uint64) ports.Record {
		return ports.Record{
			Queue:  queue,
			Minute: noon.Add(time.Duration(minutes) * time.Minute),
			Stats:  core.Stats{Processed: counted},
		}
	}

	given := []ports.Record{
		record("b", 0, 1), record("a", 1, 3), record("a", 0, 2), record("a", 1, 4), record("a", 2, 0),
		record("a", 1, 1),
	}
	want := []ports.Record{record("a", 0, 2), record("a", 1, 4), record("b", 0, 1)}

	if diff := cmp.Diff(want, storekit.NewestRecords(given)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if given[0].Queue != "b" {
		t.Error("the caller's records have changed")
	}
}

func TestHistoryListsWholeDays(t *testing.T) {
	day := noon.Day()
	now := day.Add(30*ports.Day + time.Hour)
	list := func(r ports.HistoryRequest) (listed []int) {
		r.Step = ports.Day
		h := storekit.NewHistory(r, now)
		for n := -2; n <= 32; n++ {
			h.Add(day.Add(time.Duration(n)*ports.Day), &core.Stats{Processed: 1})
		}
		for _, m := range h.List() {
			listed = append(listed, int(m.At.Sub(day)/ports.Day))
		}
		return listed
	}

	for _, tt := range []struct {
		from, to    core.Instant
		first, last int
	}{
		{0, 0, 0, 32},
		{-1, 0, 0, 32},
		{noon, noon.Add(ports.Day), 0, 1},
		{day.Add(3*ports.Day - 1), day.Add(5 * ports.Day), 2, 4},
		{day.Add(-ports.Day), day + 1, 0, 0},
	} {
		listed := list(ports.HistoryRequest{From: tt.from, To: tt.to})
		if len(listed) != tt.last-tt.first+1 || listed[0] != tt.first || listed[len(listed)-1] != tt.last {
			t.Errorf("from %d to %d the days %d are listed, want %d to %d", tt.from, tt.to, listed, tt.first, tt.last)
		}
	}
}

func TestTheFarthestDayGoes(t *testing.T) {
	now := noon.Add(40 * ports.Day)
	days := func(offsets ...int) (all []core.Instant) {
		for _, n := range offsets {
			all = append(all, now.Day().Add(time.Duration(n)*ports.Day))
		}
		return all
	}
	for _, tt := range []struct {
		offsets []int
		want    int
	}{
		{[]int{-1, 0, 1}, -1},
		{[]int{1, -1, 0}, -1},
		{[]int{-5, -31, 0, 1}, -31},
		{[]int{-31, 400, 0}, 400},
		{[]int{0}, 0},
		{nil, 0},
	} {
		if got := storekit.FarthestDay(slices.Values(days(tt.offsets...)), now); got != days(tt.want)[0] {
			t.Errorf("of %d days from today, %d goes, want %d", tt.offsets, got.Sub(now.Day())/ports.Day, tt.want)
		}
	}
}

func TestReadStatsReadsWhatAppendStatsWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStats(t)
		encoded := storekit.AppendStats(nil, s)
		if got, err := storekit.ReadStats(encoded); err != nil || got != *s {
			t.Fatalf("got %+v, %v; want %+v", got, err, *s)
		}
		if got, err := storekit.ReadStats(encoded[:len(encoded)-1]); err == nil || got != (core.Stats{}) {
			t.Fatalf("of a part of it: %+v, %v", got, err)
		}
	})
}
