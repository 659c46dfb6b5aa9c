package model

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// standing returns the Standing of an id's queued job.
func (s *shard) standing(id string, paused bool, now core.Instant) ports.Standing {
	stats := s.stats()
	st := ports.Standing{
		Now:       now,
		Paused:    paused,
		Owner:     stats.Owner,
		Token:     stats.Token,
		ExpiresAt: stats.ExpiresAt,
		Claimed:   min(len(s.claimed), ports.MaxAhead),
	}

	jobs := s.claimable()
	for i := range jobs {
		if jobs[i].ID != id || jobs[i].PerformAt > now {
			continue
		}

		st.Ahead = min(i, ports.MaxAhead)
		if jobs[0].Recoveries >= 2 && i > 0 {
			st.Alone = jobs[0].ID
		}

		alone := ""
		for claimed, c := range s.claimed {
			if c.Recoveries >= 2 && (alone == "" || claimed < alone) {
				alone = claimed
			}
		}
		if alone != "" {
			st.Alone = alone
		}
	}

	return st
}
