package core

// PermitHolder is a server that holds permits to run batches of a queue, or wants permits.
type PermitHolder struct {
	// Owner is the server's id.
	Owner string
	// Held is the number of permits that it holds. Want is the number of permits that it could use,
	// including those that it holds.
	Held, Want int
}
