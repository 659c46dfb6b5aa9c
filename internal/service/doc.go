// Package service puts guards around package inspect: rights, redaction, bounds, time limits and
// the audit's actor. The HTTP API and the dashboard both reach a store through it. Each operation
// is an [Op], from its input to its reply. The HTTP API writes the replies as JSON, and the pages
// of the dashboard show them. The replies have their own types instead of inspect's on purpose: a
// value of such a type has passed the redaction.
package service
