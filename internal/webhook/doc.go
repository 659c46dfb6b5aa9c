// Package webhook handles the jobs of a queue by calls of a URL: one signed request for each
// execution of a job, whose answer is the outcome. The engine of package skein runs the queue;
// [Caller.Handle] is its handler. docs/guide/work.md has the formats.
package webhook
