package inspect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// announce announces a node for a while.
func (s *fixture) announce(owner, name string, ttl time.Duration) {
	s.t.Helper()
	r := ports.AnnounceRequest{Node: ports.Node{Owner: owner, Name: name}, TTL: ttl}
	if _, err := s.store.Announce(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}

// A server that could not announce itself for a while has not started again. The store can't know
// that, so the server announces it.
func TestTheStartOfAServerStaysWhenItsAnnouncementRunsOut(t *testing.T) {
	s := newFixture(t)
	began := core.InstantOf(s.clock.Now()).Add(-time.Second)
	for _, server := range []ports.Node{
		{Owner: "o1", Name: "blue", Status: ports.NodeStatus{StartedAt: began}},
		{Owner: "o2", Name: "of a program that does not announce it"},
	} {
		for range 2 {
			r := ports.AnnounceRequest{Node: server, TTL: time.Second}
			if _, err := s.store.Announce(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			s.advance(17 * time.Minute)
		}
	}

	nodes, err := s.Nodes(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Fatalf("%v, %v", nodes, err)
	}
	if got := nodes[0].StartedAt; !got.Equal(began.Time()) {
		t.Errorf("blue started at %v, want %v", got, began.Time())
	}
	if got, want := nodes[1].StartedAt, s.clock.Now().Add(-17*time.Minute); !got.Equal(want) {
		t.Errorf("the other one started at %v, want %v", got, want)
	}
}

// states returns the state of each node by its owner.
func (s *fixture) states() map[string]string {
	s.t.Helper()
	nodes, err := s.Nodes(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	states := make(map[string]string)
	for _, n := range nodes {
		states[n.Owner] = n.State.String()
	}
	return states
}

func TestDrainTakesAnOwnerOrANameThatOneServerHas(t *testing.T) {
	for name, c := range map[string]struct {
		node    string
		drained string
		want    error
		says    string
	}{
		"an owner":                    {"o1", "o1", nil, ""},
		"a name":                      {"green", "o3", nil, ""},
		"an owner that is a name too": {"o3", "o3", nil, ""},
		"the name of a gone server":   {"brown", "", inspect.ErrUnknownNode, "brown"},
		"the owner of a gone server":  {"o5", "", inspect.ErrUnknownNode, "o5"},
		"nobody's":                    {"red", "", inspect.ErrUnknownNode, "red"},
		"nothing":                     {"", "", inspect.ErrUnknownNode, `""`},
		"a name that two have":        {"blue", "", inspect.ErrInvalidOptions, "o1, o2"},
		"a name that only one runs":   {"grey", "o7", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.announce("o5", "brown", time.Second)
			s.announce("o6", "grey", time.Second)
			s.advance(time.Minute)
			for owner, name := range map[string]string{
				"o1": "blue",
				"o2": "blue",
				"o3": "green",
				"o4": "o3",
				"o7": "grey",
			} {
				s.announce(owner, name, time.Hour)
			}

			want := map[string]string{
				"o1": "alive", "o2": "alive", "o3": "alive", "o4": "alive", "o5": "gone", "o6": "gone", "o7": "alive",
			}
			if c.drained != "" {
				want[c.drained] = "draining"
			}

			err := s.Drain(t.Context(), c.node, true)
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("Drain = %v; want %v that says %q", err, c.want, c.says)
			}

			if diff := cmp.Diff(want, s.states()); diff != "" {
				t.Errorf("the nodes (-want +got):\n%s", diff)
			}

			if c.drained == "" {
				return
			}

			if err := s.Drain(t.Context(), c.node, false); err != nil || s.states()[c.drained] != "alive" {
				t.Errorf("after the end of the drain it is %s, %v; want alive", s.states()[c.drained], err)
			}
		})
	}
}

func TestPauseAndResumeActOnAllServers(t *testing.T) {
	for name, how := range acts {
		t.Run(name, func(t *testing.T) {
			inCluster(t, how.waking, func(c *cluster) {
				c.push("before-", 30, 0)
				c.wait(2 * clusterPoll)
				if len(c.by) != 3 || c.startedOf("before-") != 30 {
					t.Fatalf("%v started jobs, %d in all; want 30 of all three servers", c.by, c.startedOf("before-"))
				}

				c.must(c.Pause(t.Context(), "orders"))
				c.push("paused-", 30, 0)
				c.wait(10 * clusterPoll)
				if n := c.startedOf("paused-"); n != 0 {
					t.Errorf("%d jobs of a paused queue started", n)
				}

				c.must(c.Resume(t.Context(), "orders"))
				c.wait(how.within)
				if n := c.startedOf("paused-"); n != 30 {
					t.Errorf("%d of 30 jobs have started %v after the resume", n, how.within)
				}
			})
		})
	}
}

// Claimed jobs that wait for a lane are put back when their queue is paused, on each server.
func TestPauseTakesBackWhatHasNotStarted(t *testing.T) {
	for name, how := range acts {
		t.Run(name, func(t *testing.T) {
			inCluster(t, how.waking, func(c *cluster) {
				c.push("long-", 600, 5*clusterPoll)
				c.wait(3 * clusterPoll / 2)

				c.must(c.Pause(t.Context(), "orders"))
				c.wait(clusterPoll)
				started := c.startedOf("long-")
				stats, err := c.Stats(t.Context(), "orders")
				c.must(err)
				if s := stats[0]; s.Claimed != int64(started) || started != 60 {
					t.Errorf("%d jobs are claimed and %d run; want the 60 that lanes have", s.Claimed, started)
				}

				c.wait(10 * clusterPoll)
				if n := c.startedOf("long-"); n != started {
					t.Errorf("%d jobs started after the pause", n-started)
				}
			})
		})
	}
}

func TestARunningJobIsCancelledOnWhicheverServer(t *testing.T) {
	for name, how := range acts {
		for mode, want := range map[inspect.CancelMode]string{
			inspect.CancelModeDrop:    "nothing",
			inspect.CancelModePutBack: "again",
		} {
			t.Run(fmt.Sprintf("%s, %v", name, want), func(t *testing.T) {
				inCluster(t, how.waking, func(c *cluster) {
					c.push("job-", 30, 1000*clusterPoll)
					c.wait(2 * clusterPoll)
					if len(c.by) != 3 {
						t.Fatalf("%v started jobs; want all three servers", c.by)
					}

					first := time.Now()
					var ids []string
					for i := range 30 {
						ids = append(ids, fmt.Sprint("job-", i))
					}
					result, err := c.Cancel(t.Context(), "orders", ids, mode)
					if err != nil || result.Handled != 30 {
						t.Fatalf("Cancel = %+v, %v", result, err)
					}

					c.wait(2 * how.within) // until it is heard, and until the job has ended
					stats, err := c.Stats(t.Context(), "orders")
					c.must(err)
					again := 0
					for _, at := range c.started {
						if at.After(first) || at.Equal(first) {
							again++
						}
					}

					wantClaimed := map[string]int64{"nothing": 0, "again": 30}[want]
					if s := stats[0]; s.Claimed != wantClaimed || s.Length() != 0 || s.Processed != 0 ||
						int64(again) != wantClaimed {
						t.Errorf("%d claimed, %d queued, %d done, %d began again; "+
							"want %d claimed and begun again, and no other",
							s.Claimed, s.Length(), s.Processed, again, wantClaimed)
					}
				})
			})
		}
	}
}

// A drained server lets running jobs finish, and the others take its shards. When it is to work
// again, it gets its part back.
func TestADrainedServerGivesItsShardsUp(t *testing.T) {
	inCluster(t, true, func(c *cluster) {
		c.push("job-", 30, 2*clusterPoll)
		c.wait(clusterPoll)

		shards := func() map[string]int {
			nodes, err := c.Nodes(t.Context())
			c.must(err)
			got := make(map[string]int)
			for _, n := range nodes {
				got[n.Name+" "+n.State.String()] = n.Status.Shards
			}
			return got
		}

		c.must(c.Drain(t.Context(), "node-1", true))
		c.wait(2 * clusterTTL)
		if diff := cmp.Diff(map[string]int{
			"node-0 alive":    6,
			"node-1 draining": 0,
			"node-2 alive":    6,
		}, shards()); diff != "" {
			t.Errorf("shards while it drains (-want +got):\n%s", diff)
		}

		had := c.by["node-1"]
		c.push("later-", 30, 0)
		c.wait(clusterPoll)
		if c.startedOf("later-") != 30 || c.by["node-1"] != had {
			t.Errorf("%d of 30 jobs started, %d on the drained server; want all, and none",
				c.startedOf("later-"), c.by["node-1"]-had)
		}

		c.must(c.Drain(t.Context(), "node-1", false))
		c.wait(2 * clusterTTL)
		if diff := cmp.Diff(map[string]int{
			"node-0 alive": 4,
			"node-1 alive": 4,
			"node-2 alive": 4,
		}, shards()); diff != "" {
			t.Errorf("shards when it works again (-want +got):\n%s", diff)
		}

		stats, err := c.Stats(t.Context(), "orders")
		c.must(err)
		if s := stats[0]; s.Processed != 60 || s.Failed != 0 {
			t.Errorf("%d done and %d failed; want 60 and none", s.Processed, s.Failed)
		}
	})
}
