package memory

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// However many come, uniting is what core says merging is.
func TestUniteIsMergePayloads(t *testing.T) {
	payload := rapid.Custom(func(t *rapid.T) core.Payload {
		return core.Payload{
			Data:  []byte(strconv.Itoa(rapid.IntRange(0, 100).Draw(t, "data"))),
			Score: float64(rapid.IntRange(0, 50).Draw(t, "score")),
			Meta:  []byte(rapid.SampledFrom([]string{"one trace", "another"}).Draw(t, "meta")),
		}
	})
	payloads := rapid.Custom(func(t *rapid.T) []core.Payload {
		least := rapid.SampledFrom([]int{0, 2 * uniteAt}).Draw(t, "least")
		set := core.NewPayloadSet(rapid.SliceOfN(payload, least, 4*uniteAt).Draw(t, "payloads"))
		return set.List()
	})
	rapid.Check(t, func(t *rapid.T) {
		there, coming := payloads.Draw(t, "there"), payloads.Draw(t, "coming")
		want := core.MergePayloads(there, coming)
		set := core.NewPayloadSet(there)
		unite(&set, coming)
		if diff := cmp.Diff(want, set.List()); diff != "" {
			t.Fatalf("united (-core +memory):\n%s", diff)
		}
	})
}
