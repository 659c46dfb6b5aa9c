package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	rules "github.com/skeinq/skein/internal/vectors"
)

func TestOnceVectors(t *testing.T) {
	for _, v := range vectors[rules.Once](t, "once.json") {
		t.Run(v.About, func(t *testing.T) {
			var rule core.MergeRule
			if v.Stamped {
				rule.Same = core.SamePush
			}

			remembered := map[core.OnceKey]core.Instant{}
			var repeats []int
			for i, p := range v.Pushes {
				e := core.Entry{ID: p.ID, Payload: core.Payload{Data: []byte(p.Data)}, OnceIn: p.OnceIn}
				if err := e.Validate(); err != nil {
					t.Fatal(err)
				}
				e.Score = float64(i)
				e.Payload = rule.Stored(e.Payload)
				now, key := core.Instant(1000).Add(p.At), e.OnceKey(v.Stamped)
				switch {
				case e.OnceIn == 0:
				case core.Repeats(remembered[key], now):
					repeats = append(repeats, i)
				default:
					remembered[key] = e.OnceUntil(now)
				}
			}
			equal(t, "repeats", append([]int{}, v.Repeats...), append([]int{}, repeats...))
		})
	}
}

// Keys are stored, so they are the same in all versions.
func TestOnceKeyIsStable(t *testing.T) {
	e := core.Entry{ID: "order-42", Payload: core.Payload{Data: []byte(`{"state":"paid"}`)}}
	want := core.OnceKey{
		0xdb, 0xda, 0x30, 0x07, 0x90, 0x4f, 0x61, 0x92,
		0x39, 0xb1, 0x58, 0xf4, 0x11, 0x4d, 0xc3, 0x3c,
	}
	equal(t, "key", want, e.OnceKey(false))
	e.Payload = core.MergeRule{Same: core.SamePush}.Stored(e.Payload)
	equal(t, "key without the stamp", want, e.OnceKey(true))
}

func TestOnceInIsValidated(t *testing.T) {
	for d, ok := range map[time.Duration]bool{
		0: true, core.MinOnce: true, core.MaxOnce: true,
		-1: false, core.MinOnce - 1: false, core.MaxOnce + 1: false,
	} {
		e := core.Entry{ID: "a", OnceIn: d}
		if err := e.Validate(); errors.Is(err, core.ErrInvalidTime) == ok || (err == nil) != ok {
			t.Errorf("%v: %v", d, err)
		}
	}
}
