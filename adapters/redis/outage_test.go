package redis

import (
	"errors"
	"testing"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// What a restart, a failover or a resharding brings passes by itself, so it is an
// outage of unknown outcome and never ends a server.
func TestOutagesStayOutages(t *testing.T) {
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"MOVED 3999 127.0.0.1:6381",
		"ASK 3999 127.0.0.1:6381",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"NOREPLICAS Not enough good replicas to write.",
		"ERR max number of clients reached",
		"ERR Script attempted to access a non local key in a cluster node",
	} {
		err := translate(serverError(text))
		if err == nil || storekit.HasKnownOutcome(err) {
			t.Errorf("%s became %v, which says that nothing was written", text, err)
		}
	}
	// One that the server did not say is none of its errors.
	if err := translate(errors.New("WRONGPASS")); errors.Is(err, ports.ErrUnusable) {
		t.Errorf("a text of somebody else became %v", err)
	}
}
