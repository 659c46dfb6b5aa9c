package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// checkedStore is a store with a server, whose checks are fine.
type checkedStore struct {
	inspect.Store
	rows []ports.Check
	err  error
}

func (s checkedStore) Check(context.Context) ([]ports.Check, error) { return s.rows, nil }

func (s checkedStore) Nodes(ctx context.Context) (ports.NodesReply, error) {
	if s.err != nil {
		return ports.NodesReply{}, s.err
	}
	return s.Store.Nodes(ctx)
}

func TestChecksCompareClocks(t *testing.T) {
	fine := []ports.Check{{Name: "answers", Value: "yes"}}
	cases := []struct {
		name string
		// off is how far the store's clock is ahead of this process's, and servers how far the clocks of
		// servers are ahead of the store's.
		off     time.Duration
		servers []time.Duration
		status  inspect.CheckStatus
		says    string
	}{
		{"equal", 0, []time.Duration{0, 999 * time.Millisecond, -999 * time.Millisecond}, inspect.CheckOK, "within 1s"},
		{"this process is ahead", -10 * time.Minute, nil, inspect.CheckWarn, "this process is 10m0s ahead"},
		{"this process is behind", time.Second, nil, inspect.CheckWarn, "this process is 1s behind"},
		{"a server", 0, []time.Duration{time.Second, 0}, inspect.CheckWarn, "server s0 is 1s ahead"},
		{
			"servers and this process",
			-time.Hour,
			[]time.Duration{-time.Minute},
			inspect.CheckWarn,
			"this process is 1h0m0s ahead, server s0 is 1m0s behind",
		},
		{
			"many servers",
			0,
			[]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour, time.Hour},
			inspect.CheckWarn,
			"server s2 is 1h0m0s ahead, 2 more servers",
		},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(tt.off) }})
				for i, ahead := range tt.servers {
					node := ports.Node{
						Owner:  fmt.Sprint(i),
						Name:   fmt.Sprint("s", i),
						Lanes:  1,
						Status: ports.NodeStatus{ClockAhead: ahead},
					}
					if _, err := store.Announce(t.Context(),
						ports.AnnounceRequest{Node: node, TTL: time.Hour}); err != nil {
						t.Fatal(err)
					}
				}

				rows, err := inspect.New(checkedStore{Store: store, rows: fine}, inspect.Options{}).Checks(t.Context())
				if err != nil || len(rows) != 2 {
					t.Fatalf("%+v, %v", rows, err)
				}

				row := rows[1]
				if row.Name != "clocks" || row.Status != tt.status || !strings.Contains(row.Value, tt.says) ||
					(row.Advice == "") != (tt.status == inspect.CheckOK) {
					t.Errorf("%+v; want status %v and %q", row, tt.status, tt.says)
				}
			})
		})
	}
}

// A server that is gone has no clock. A list that can't be read hides no other check, and a store
// that does not answer is asked no more.
func TestChecksOfClocksThatAreNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		node := ports.Node{Owner: "o", Name: "gone", Lanes: 1, Status: ports.NodeStatus{ClockAhead: time.Hour}}
		if _, err := store.Announce(t.Context(), ports.AnnounceRequest{Node: node, TTL: time.Second}); err != nil {
			t.Fatal(err)
		}

		time.Sleep(time.Minute)
		checks := func(s checkedStore) []inspect.Check {
			rows, err := inspect.New(s, inspect.Options{}).Checks(t.Context())
			if err != nil {
				t.Error(err)
			}
			return rows
		}

		fine := []ports.Check{{Name: "answers"}, {Name: "memory"}}
		if rows := checks(checkedStore{Store: store, rows: fine}); len(rows) != 3 || rows[2].Status != inspect.CheckOK {
			t.Errorf("beside a server that is gone: %+v", rows)
		}

		unread := fmt.Errorf("no list")
		if rows := checks(checkedStore{Store: store, rows: fine, err: unread}); len(rows) != 3 ||
			rows[2].Status != inspect.CheckUnknown {
			t.Errorf("without the list: %+v", rows)
		}

		silent := []ports.Check{{Name: "answers", Status: ports.CheckFail}}
		if rows := checks(checkedStore{Store: store, rows: silent, err: unread}); len(rows) != 1 {
			t.Errorf("of a store that does not answer: %+v", rows)
		}

		if rows, err := inspect.New(store, inspect.Options{}).Checks(t.Context()); err != nil || len(rows) != 0 {
			t.Errorf("of a store without a server: %+v, %v", rows, err)
		}
	})
}
