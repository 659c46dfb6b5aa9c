// Package step has the cases of operators, who change what a store holds step by step.
//
//   - step.go is about steps over queued jobs.
//   - deletepayloads.go is about the deletion of some payloads of a job.
//   - hold.go is about jobs that are held, and about steps over first payloads.
//   - morgue.go is about revive, purge and edit, and editqueued.go about edits of queued jobs.
//   - import.go is about dead letters of another queue, and importjobs.go about jobs of one.
//   - quarantine.go is about records that the store can't read.
package step

import (
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

// Groups returns the cases of the room. The group damaged is for a [Damager].
func Groups(store ports.ShardStore) []env.Group {
	all := []env.Group{
		{Name: "step", Cases: stepCases()},
		{Name: "hold", Cases: holdCases()},
		{Name: "morgue", Cases: morgueCases()},
		{Name: "import", Cases: importCases()},
		{Name: "import jobs", Cases: importJobsCases()},
		{Name: "delete payloads", Cases: deletePayloadsCases()},
		{Name: "edit queued", Cases: editQueuedCases()},
		{Name: "quarantine", Cases: quarantineCases()},
	}
	if _, ok := store.(env.Damager); ok {
		all = append(all, env.Group{Name: "damaged", Cases: damageCases()})
	}
	return all
}
