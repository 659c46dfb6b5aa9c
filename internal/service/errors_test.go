package service

import (
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// An error is that of the version that started last on one of its queues, shortly before it.
func TestAnErrorBeginsWithAVersion(t *testing.T) {
	first := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	at := func(queue, version string, before time.Duration) start {
		return start{queue, version, first.Add(-before)}
	}
	for name, tt := range map[string]struct {
		of   starts
		want string
	}{
		"at once":             {starts{at("orders", "v2", 0)}, "v2"},
		"just before the end": {starts{at("orders", "v2", startExplains-1)}, "v2"},
		"too long ago":        {starts{at("orders", "v2", startExplains)}, ""},
		"after the error":     {starts{at("orders", "v2", -1)}, ""},
		"of another queue":    {starts{at("mails", "v2", time.Minute)}, ""},
		"the last of several": {
			starts{
				at("orders", "v1", 2*time.Minute), at("orders", "v3", time.Minute), at("orders", "v2", 3*time.Minute),
			}, "v3",
		},
		"of two at once": {starts{at("orders", "v2", time.Minute), at("orders", "v1", time.Minute)}, "v2"},
	} {
		g := &inspect.ErrorGroup{First: first, Parts: []inspect.ErrorPart{{Queue: "bills"}, {Queue: "orders"}}}
		if got := tt.of.before(g); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
