package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// drawPayload takes Data and Score from few values, so that they often meet, and Meta from enough
// values to tell each copy apart.
func drawPayload(t *rapid.T) core.Payload {
	return core.Payload{
		Data:  []byte(rapid.StringOfN(rapid.RuneFrom([]rune("abcdé")), 0, 2, -1).Draw(t, "data")),
		Score: rapid.SampledFrom([]float64{-1e15, -1, -0.5, 0, 0.5, 1, 2, 1e15}).Draw(t, "score"),
		Meta:  fmt.Append(nil, rapid.Uint32().Draw(t, "meta")),
	}
}

// naiveSet is the oracle: the rule word for word, at any cost.
type naiveSet map[string]core.Payload

func (s naiveSet) add(p core.Payload) {
	if there, ok := s[string(p.Data)]; ok && there.Score <= p.Score {
		return
	}
	s[string(p.Data)] = p
}

func (s naiveSet) list() []core.Payload {
	list := []core.Payload{}
	for _, p := range s {
		list = append(list, p)
	}
	slices.SortFunc(list, func(p, q core.Payload) int {
		switch {
		case p.Score < q.Score, p.Score == q.Score && string(p.Data) < string(q.Data):
			return -1
		}
		return 1
	})
	return list
}

func (s naiveSet) takeFirst(n int) []core.Payload {
	taken := s.list()[:n]
	for _, p := range taken {
		delete(s, string(p.Data))
	}
	return taken
}

// setEqualsOracle runs the same additions and removals against a PayloadSet and the oracle.
// Payloads that were taken must stay as they were whatever the set does later, and the other way
// round.
func setEqualsOracle(t *rapid.T) {
	start := rapid.SliceOfN(rapid.Custom(drawPayload), 0, 12).Draw(t, "start")
	set, oracle := core.NewPayloadSet(start), naiveSet{}
	for _, p := range start {
		oracle.add(p)
	}

	type taken struct{ got, want []core.Payload }
	var all []taken

	t.Repeat(map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			p := drawPayload(t)
			set.Add(p)
			oracle.add(p)
		},
		"take": func(t *rapid.T) {
			n := rapid.IntRange(0, set.Len()).Draw(t, "n")
			tk := taken{got: set.TakeFirst(n), want: oracle.takeFirst(n)}
			_ = append(tk.got, payload("the caller's own", 0))
			all = append(all, tk)
		},
		"remove": func(t *rapid.T) {
			named, there := rapid.SliceOfN(rapid.Custom(drawPayload), 0, 12).Draw(t, "named"), len(oracle)
			for _, p := range named {
				if q, ok := oracle[string(p.Data)]; ok && q.Score == p.Score {
					delete(oracle, string(p.Data))
				}
			}
			if removed := set.Remove(named); removed != there-len(oracle) {
				t.Fatalf("removed %d of %d, left %d", removed, there, len(oracle))
			}
		},
		"": func(t *rapid.T) {
			if diff := cmp.Diff(oracle.list(), slices.Clone(set.List())); diff != "" && set.Len()+len(oracle) > 0 {
				t.Fatalf("set (-want +got):\n%s", diff)
			}
			for _, tk := range all {
				if diff := cmp.Diff(tk.want, tk.got); diff != "" {
					t.Fatalf("taken (-want +got):\n%s", diff)
				}
			}
		},
	})
}

func TestPayloadSetEqualsOracle(t *testing.T) { rapid.Check(t, setEqualsOracle) }

func FuzzPayloadSet(f *testing.F) { f.Fuzz(rapid.MakeFuzz(setEqualsOracle)) }

func TestMergePayloadsChangesNoArgument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.Custom(drawPayload), 0, 20)
		there := naiveSetOf(draw.Draw(t, "there")).list()
		coming := naiveSetOf(draw.Draw(t, "coming")).list()
		thereBefore, comingBefore := slices.Clone(there), slices.Clone(coming)

		merged := core.MergePayloads(there, coming)

		want := naiveSetOf(append(slices.Clone(there), coming...)).list()
		if diff := cmp.Diff(want, merged); diff != "" {
			t.Fatalf("merged (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([][]core.Payload{thereBefore, comingBefore}, [][]core.Payload{there, coming}); diff != "" {
			t.Fatalf("arguments (-before +after):\n%s", diff)
		}
	})
}

func naiveSetOf(payloads []core.Payload) naiveSet {
	s := naiveSet{}
	for _, p := range payloads {
		s.add(p)
	}
	return s
}

func TestSmallerScoreStaysWithItsMeta(t *testing.T) {
	there := core.Payload{Data: []byte("v"), Score: 2, Meta: []byte("there")}
	tests := []struct {
		name   string
		coming float64
		want   core.Payload
	}{
		{"a larger score changes nothing", 3, there},
		{"on a tie the copy that was there stays", 2, there},
		{"a smaller score replaces it, Meta and all", 1,
			core.Payload{Data: []byte("v"), Score: 1, Meta: []byte("coming")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			coming := core.Payload{Data: []byte("v"), Score: tt.coming, Meta: []byte("coming")}
			got := core.MergePayloads([]core.Payload{there}, []core.Payload{coming})
			equal(t, "merged", []core.Payload{tt.want}, got)
		})
	}
}

func TestPayloadsAreOrderedByScoreThenBytes(t *testing.T) {
	ordered := []core.Payload{
		payload("z", -1), payload("", 0), payload("A", 0), payload("a", 0), payload("a\x00", 0), payload("é", 0),
		payload("\xff", 0), payload("", 0.5),
	}
	for i, p := range ordered {
		for j, q := range ordered {
			if got, want := p.Compare(q), sign(i-j); got != want {
				t.Errorf("Compare(%q %v, %q %v) = %d, want %d", p.Data, p.Score, q.Data, q.Score, got, want)
			}
		}
	}
}

func sign(n int) int { return max(-1, min(1, n)) }

func TestTakeFirstTakesWhatIsThere(t *testing.T) {
	tests := []struct {
		n    int
		want int
	}{{-1, 0}, {0, 0}, {2, 2}, {3, 3}, {4, 3}}
	for _, tt := range tests {
		set := core.NewPayloadSet([]core.Payload{payload("a", 1), payload("b", 2), payload("c", 3)})
		if got := len(set.TakeFirst(tt.n)); got != tt.want || set.Len() != 3-tt.want {
			t.Errorf("TakeFirst(%d) of 3 took %d and left %d", tt.n, got, set.Len())
		}
	}
}

// However many come at once, merging them is adding them one by one.
func TestMergeIsAddingOneByOne(t *testing.T) {
	payload := rapid.Custom(func(t *rapid.T) core.Payload {
		return core.Payload{
			Data:  fmt.Append(nil, rapid.IntRange(0, 100).Draw(t, "data")),
			Score: float64(rapid.IntRange(0, 50).Draw(t, "score")),
			Meta:  fmt.Append(nil, rapid.Uint32().Draw(t, "meta")),
		}
	})

	payloads := rapid.Custom(func(t *rapid.T) []core.Payload {
		least := rapid.SampledFrom([]int{0, 64}).Draw(t, "least")
		set := core.NewPayloadSet(rapid.SliceOfN(payload, least, 128).Draw(t, "payloads"))
		return set.List()
	})

	rapid.Check(t, func(t *rapid.T) {
		there, coming := payloads.Draw(t, "there"), payloads.Draw(t, "coming")
		oneByOne, atOnce := core.NewPayloadSet(there), core.NewPayloadSet(there)
		for _, p := range coming {
			oneByOne.Add(p)
		}

		taken := atOnce.TakeFirst(len(there) / 3)
		before := slices.Clone(taken)
		atOnce.Merge(taken)
		atOnce.Merge(coming)

		if diff := cmp.Diff(oneByOne.List(), atOnce.List()); diff != "" {
			t.Fatalf("merged (-one by one +at once):\n%s", diff)
		}
		if diff := cmp.Diff(before, taken); diff != "" {
			t.Fatalf("what was taken has changed:\n%s", diff)
		}
	})
}
