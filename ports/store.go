package ports

// ShardStore is the whole contract: what a backend implements. Consumers ask for
// the small interface that they use. Notifier and Settler are extra, found by
// assertion.
type ShardStore interface {
	Producer
	Consumer
	Registry
	Inspector
	Operator
}
