package memory

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// standing returns the values that decide when the queued job of an id runs.
func (s *shard) standing(id string, paused bool, now core.Instant) ports.Standing {
	st := ports.Standing{Now: now, Paused: paused, Claimed: min(s.claimed.size, ports.MaxAhead)}
	if s.lease.held {
		st.Owner, st.Token, st.ExpiresAt = s.lease.owner, s.lease.token, s.lease.expires
	}

	e := s.queued(id)
	if e == nil || e.claim != nil || e.PerformAt > now {
		return st
	}
	if first, _ := s.ready.First(); first.id != id && first.Alone() {
		st.Alone = first.id
	}

	for ahead := range s.ready.Scan(storekit.Start{}, false) {
		if ahead.value.id == id || st.Ahead == ports.MaxAhead {
			break
		}
		st.Ahead++
	}

	if alone := s.claimed.firstAlone(); alone != "" {
		st.Alone = alone
	}
	return st
}

// firstAlone returns the first id of the claimed jobs that had to be claimed alone, or "" if there
// is no such job.
func (l *claimList) firstAlone() (id string) {
	if l.alone == 0 {
		return ""
	}
	for c := l.first; c != nil; c = c.next {
		if c.Alone() && (id == "" || c.ID < id) {
			id = c.ID
		}
	}
	return id
}
