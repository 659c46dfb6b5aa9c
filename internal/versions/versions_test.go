package versions

import (
	"testing"
	"time"
)

// A version has started when the first of its servers has, in whatever order these are added.
func TestTheFirstStartOfAVersion(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2030, 1, 2, 3, 4, second, 0, time.UTC) }
	s := Starts{}
	for _, started := range []int{3, 2, 4} {
		s.Add("v2", at(started))
	}
	s.Add("v1", at(9))
	if len(s) != 2 || !s["v2"].Equal(at(2)) || !s["v1"].Equal(at(9)) {
		t.Errorf("%v", s)
	}
}
