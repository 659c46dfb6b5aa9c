package record

import "github.com/skeinq/skein/ports"

// PlaceSchedule is the scripts' name for a schedule in Places.
const PlaceSchedule = "s"

// Places are the scripts' names for where a record stood. k is the cancel of a claimed job.
var Places = map[string]ports.Place{
	"q":           ports.PlaceQueued,
	"c":           ports.PlaceClaimed,
	"k":           ports.PlaceClaimed,
	"d":           ports.PlaceDead,
	PlaceSchedule: ports.PlaceSchedule,
}

// ParseQuarantined reads a value that lua/lib/aside.lua has made; only the beginning of its
// record is here.
func ParseQuarantined(key string, size int, text string) (ports.QuarantinedRecord, error) {
	d := decoder{rest: text}
	r := ports.QuarantinedRecord{Key: key, Since: d.instant(), Size: size}
	id, reason := int(d.number(2)), int(d.number(2))
	place, known := Places[d.take(1)]
	r.Place, r.ID, r.Reason = place, d.take(id), d.take(reason)
	if r.Stored = []byte(d.rest); d.bad || !known {
		return ports.QuarantinedRecord{}, ErrStored
	}
	return r, nil
}
