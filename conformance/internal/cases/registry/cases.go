// Package registry has the cases of what a store keeps beside jobs, and of the store as a whole.
//
//   - declare.go is about queues: how they are declared and forgotten.
//   - settings.go is about the settings of a queue.
//   - registry.go is about the list of servers.
//   - permits.go is about the permits of a queue with a limit.
//   - limiter.go is about the rates of queues and of their keys.
//   - history.go is about the counts of servers by minute, and days.go about their sums by day.
//   - audit.go is about the log of operators' actions, and tracked.go about ids to watch.
//   - identity.go is about the id of the store.
//   - wakeups.go is about hints of earlier work.
//   - store.go is about handles, backends, requests, replies and contexts.
package registry

import (
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

// Groups returns the cases of the room. The groups of wake-ups are for a [ports.Notifier].
func Groups(store ports.ShardStore) []env.Group {
	all := []env.Group{
		{Name: "declare", Cases: declareCases()},
		{Name: "forget", Cases: forgetCases()},
		{Name: "settings", Cases: settingsCases()},
		{Name: "registry", Cases: registryCases()},
		{Name: "audit", Cases: auditCases()},
		{Name: "tracked", Cases: trackedCases()},
		{Name: "identity", Cases: identityCases(), Once: true},
		{Name: "permits", Cases: permitCases()},
		{Name: "rates", Cases: limiterCases()},
		{Name: "history", Cases: historyCases()},
		{Name: "days", Cases: dayCases()},
		{Name: "store", Cases: storeCases()},
	}

	if _, ok := store.(ports.Notifier); ok {
		all = append(all, env.Group{Name: "wakeups", Cases: wakeupCases()},
			env.Group{Name: "permit wakeups", Cases: permitWakeupCases()})
	}

	return all
}
