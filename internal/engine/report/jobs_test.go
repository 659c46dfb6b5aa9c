package report_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
)

// The log has the number of recoveries that count: one of a job that had not begun adds nothing to
// a job that was recovered before. The recovery that is one too many has its own message.
func TestALineCountsTheRecoveriesThatCount(t *testing.T) {
	for _, tt := range []struct {
		claim core.Claim
		want  string
	}{
		{core.Claim{Job: core.Job{ID: "a"}}, `msg="job recovered" queue=q shard=q/0 id=a recoveries=1 of=3`},
		{core.Claim{Job: core.Job{ID: "a", State: core.State{Recoveries: 3}}},
			`msg="job recovered" queue=q shard=q/0 id=a recoveries=3 of=3`},
		{core.Claim{Job: core.Job{ID: "a", State: core.State{Recoveries: 3}}, Begun: true},
			`msg="job recovered too often" queue=q shard=q/0 id=a recoveries=4 of=3`},
	} {
		var log bytes.Buffer
		report.NewJobs(slog.New(slog.NewTextHandler(&log, nil))).Recovers(core.Shard{Queue: "q"}, "",
			[]core.Claim{tt.claim}, 3)
		if !strings.Contains(log.String(), tt.want) {
			t.Errorf("%+v: the log is %q, want %q", tt.claim, log.String(), tt.want)
		}
	}
}
