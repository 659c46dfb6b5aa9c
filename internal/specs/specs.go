// Package specs parses the specs of schedules with their time zones, which package core can't load.
package specs

import (
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// maxSpecs is the number of parsed specs that are kept. Most queues have few different ones.
const maxSpecs = 1000

// Specs parses the specs of schedules, and keeps them. The zero value is ready. It is safe for
// concurrent use.
type Specs struct {
	// Zone loads a time zone. nil means time.LoadLocation.
	Zone func(name string) (*time.Location, error)

	mu     sync.Mutex
	byText map[string]core.Spec
}

// Parse returns a spec with its time zone.
func (s *Specs) Parse(text string) (core.Spec, error) {
	s.mu.Lock()
	spec, known := s.byText[text]
	s.mu.Unlock()
	if known {
		return spec, nil
	}
	spec, err := s.parse(text)
	if err != nil {
		return core.Spec{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byText == nil || len(s.byText) >= maxSpecs {
		s.byText = make(map[string]core.Spec)
	}
	s.byText[text] = spec
	return spec, nil
}

func (s *Specs) parse(text string) (core.Spec, error) {
	name := core.SpecZone(text)
	if name == "" {
		return core.ParseSpec(text, nil)
	}
	load := s.Zone
	if load == nil {
		load = time.LoadLocation
	}
	zone, err := load(name)
	if err != nil {
		return core.Spec{}, fmt.Errorf("%w: the time zone %s can't be loaded (%w); check its name, "+
			"and install the zone data on this host or import time/tzdata in the program", core.ErrInvalidSchedule, name, err)
	}
	return core.ParseSpec(text, zone)
}
