package inspect

import (
	"fmt"
	"testing"
)

// Short lists are read whole, and long ones get equal shares of what these leave.
func TestShortListsOfErrorsAreReadWhole(t *testing.T) {
	for want, entries := range map[string]int64{
		"[{b 3} {c 28} {a 29}]": 60,
		"[{b 3} {c 50} {a 97}]": 150,
		"[{b 0} {c 0} {a 1}]":   1,
	} {
		lists := []errorList{{queue: "a", size: 97}, {queue: "b", size: 3}, {queue: "c", size: 50}}
		shareOut(lists, entries)
		type share struct {
			queue string
			n     int64
		}
		var got []share
		for _, l := range lists {
			got = append(got, share{l.queue, l.share})
		}
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%d entries are shared as %s, want %s", entries, text, want)
		}
	}
}
