package random

import "github.com/skeinq/skein/ports"

// permit requests permits, mostly with a new attempt. Servers may have different limits.
func (d *driver) permit() {
	q := d.queue()
	owner := pick(d, "owner", "n1", "n2", "n3")
	who := permitKey{q.Name, owner}

	r := ports.PermitRequest{
		Queue:   q.Name,
		Owner:   owner,
		Attempt: max(1, d.permitAttempts[who]+pick(d, "attempt", int64(1), 1, 1, 0, -1)),
		Limit:   pick(d, "limit", 3, 3, 3, 5),
		Hold:    pick(d, "hold", 0, 1, 2, 3, 4),
		TTL:     pick(d, "TTL", randomTTLs()...),
	}
	r.Want = r.Hold + pick(d, "more", 0, 0, 1)

	if _, err := compare(d, "Permit", r, ports.ShardStore.Permit); err == nil {
		d.permitAttempts[who] = r.Attempt
	}
}
