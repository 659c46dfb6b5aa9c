// Package versions finds out when versions of servers first started.
package versions

import "time"

// Starts are the first known starts of servers, by version.
type Starts map[string]time.Time

// Add adds the start of a server.
func (s Starts) Add(version string, at time.Time) {
	if first, known := s[version]; !known || at.Before(first) {
		s[version] = at
	}
}
