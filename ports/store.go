package ports

// ShardStore is the whole contract: what a backend implements. Code that uses only a
// part of it asks for that small interface. Notifier and [Settler] are optional: a store
// that has them is found by a type assertion.
type ShardStore interface {
	Producer
	Consumer
	Permitter
	Registry
	Inspector
	Operator
	Quarantine
	Auditor
}
