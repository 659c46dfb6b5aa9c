package random

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// randomIDs returns only a few ids, so that entries meet. Their order by bytes differs from the
// order of any language.
func randomIDs() []string { return []string{"9", "10", "B", "a", "ab", "é"} }

// randomData returns a few frequent payloads, so that payloads meet. It returns enough others for
// jobs with a dozen payloads, some of several KiB. So a store that keeps large jobs in another way
// has to convert jobs in both directions.
func randomData() []datum {
	often := []datum{"", "p", "q", "pq", "\x00\xff"}
	seldom := []datum{"0", "00", "é", "z\n", "\xff", "{}", "p\x00"}
	for _, size := range []int{1500, 3 << 10, 9 << 10} {
		seldom = append(seldom, datum(strings.Repeat("z", size)))
	}
	return slices.Concat(often, often, often, seldom)
}

// datum is the data of a payload, which is printed in a short form.
type datum string

// GoString implements fmt.GoStringer, which rapid uses to print draws.
func (d datum) GoString() string {
	const most = 20
	if len(d) <= most {
		return strconv.Quote(string(d))
	}
	return fmt.Sprintf("%q and more, %d bytes", string(d[:most]), len(d))
}

func (d *driver) data(label string) []byte { return []byte(pick(d, label, randomData()...)) }

// distinctData draws the data of n different payloads.
func (d *driver) distinctData(n int) [][]byte {
	all := make([][]byte, n)
	for i, data := range rapid.SliceOfNDistinct(
		rapid.SampledFrom(randomData()), n, n, rapid.ID[datum],
	).Draw(d.t, "payloads") {
		all[i] = []byte(data)
	}
	return all
}

func randomTTLs() []time.Duration {
	return []time.Duration{ttl, ttl, 10*time.Second + 999, time.Millisecond}
}

func declaration(q ports.Queue) ports.DeclareRequest {
	return ports.DeclareRequest{Queue: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs, Merge: q.Merge}
}

func (d *driver) push() {
	q := d.queue()
	r := ports.PushRequest{Queue: q.Name, Shards: q.Shards, Generation: q.Generation}
	r.Rule = core.PushRule{
		Kind:  pick(d, "rule", core.Keep, core.Keep, core.Earliest, core.Debounce),
		Limit: pick(d, "limit", 0, 5*time.Second),
	}

	r.DropStale = pick(d, "drop stale", false, false, true)
	r.Stamped = rarely(d, "stamped")

	for range pick(d, "entries", 1, 1, 2, 4) {
		r.Entries = append(r.Entries, d.entry())
	}
	if rarely(d, "many") {
		r.Entries = d.manyEntries()
	}

	if rarely(d, "misinformed") {
		switch pick(d, "about", "queue", "shards", "generation") {
		case "queue":
			r.Queue = "nowhere"
		case "shards":
			r.Shards++
		case "generation":
			r.Generation++
		}
	}

	compare(d, "Push", r, ports.ShardStore.Push)
}

// manyEntries draws many payloads for one id.
func (d *driver) manyEntries() []core.Entry {
	id := pick(d, "id", randomIDs()...)
	var entries []core.Entry
	for _, data := range d.distinctData(pick(d, "how many", 7, 8, 9, 12)) {
		e := d.entry()
		e.ID, e.Data = id, data
		entries = append(entries, e)
	}
	return entries
}

func (d *driver) entry() core.Entry {
	now := d.model().Now()
	e := core.Entry{
		ID: pick(d, "id", randomIDs()...),
		Payload: core.Payload{
			Data:  d.data("data"),
			Score: pick(d, "score", 0, 1, 1.5, 2, -1, math.Copysign(0, -1), 1<<53),
		},
		When: pick(d, "when", core.When{}, core.When{}, core.When{},
			core.In(-time.Second), core.In(time.Second), core.In(10*time.Second+time.Nanosecond),
			core.At(now), core.At(now.Add(time.Second)), core.At(0), core.At(core.MaxInstant),
			core.Urgent(time.Second), core.Urgent(time.Hour)),
	}

	if meta := pick(d, "meta", "", "", "m", "n"); meta != "" {
		e.Meta = []byte(meta)
	}
	e.Tags = d.tags()
	// Its time never ends: the clock steps back, and a store may remember what has ended, or not.
	e.OnceIn = pick(d, "once in", 0, 0, 0, core.MaxOnce)
	return e
}

// tags draws tags that meet, so that more than core.MaxTags come together. Their order by bytes is
// not the order of any language.
func (d *driver) tags() core.Tags {
	some := pick(d, "tags", "", "", "", "", "b", "a B", "é 10 9", "c d e f g h i j", "Z Y X", "é")
	tags, _ := core.NewTags(strings.Fields(some)...) // these are valid
	return tags
}
