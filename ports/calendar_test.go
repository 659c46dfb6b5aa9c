package ports_test

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestARepliesResultsAreThoseOfItsChanges(t *testing.T) {
	for _, tt := range []struct {
		changes, results int
		want             string
	}{
		{0, 0, ""}, {1, 1, ""}, {3, 1, ""}, {3, 3, ""},
		{0, 1, "1 results for 0 changes"}, {3, 0, "0 results for 3 changes of schedules of shard orders/2"}, {3, 4, "4 results for 3 changes"},
	} {
		request := ports.ChangeSchedulesRequest{Shard: core.Shard{Queue: "orders", Index: 2}, Changes: make([]ports.ScheduleChange, tt.changes)}
		reply := ports.ChangeSchedulesReply{Results: make([]ports.ScheduleResult, tt.results)}
		switch err := reply.Check(&request); {
		case tt.want == "" && err != nil:
			t.Errorf("%+v: %v", tt, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%+v: error %v", tt, err)
		}
	}
}
