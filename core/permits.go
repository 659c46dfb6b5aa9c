package core

// PermitHolder is a node that holds permits to run batches of a queue, or wants some.
type PermitHolder struct {
	// Owner is the node's id.
	Owner string
	// Held is how many it holds, and Want how many it could use, those included.
	Held, Want int
}
