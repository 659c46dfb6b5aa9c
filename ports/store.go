package ports

// ShardStore is the whole contract that a backend implements. Code that uses only a part of it
// takes one of the embedded interfaces. [Notifier], [Checker], [Settler], [Pooled] and
// [TurnLimiter] are optional: a type assertion finds them.
type ShardStore interface {
	Producer
	Consumer
	Permitter
	Limiter
	Registry
	Inspector
	Operator
	Quarantine
	Auditor
	Tracker
	Identity
	Calendar
}
