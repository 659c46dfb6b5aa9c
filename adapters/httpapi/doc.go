// Package httpapi serves what package inspect shows and does over HTTP, as JSON: for dashboards, scripts and
// programs in other languages. It works on every store and needs nothing but the standard library.
//
//	api, err := httpapi.New(inspect.New(store, inspect.Options{}), httpapi.Options{Authorize: authorize})
//	mux.Handle("/jobs/", http.StripPrefix("/jobs", api)) // GET /jobs/api/v1/stats
//
// Every route stands in one table, which the mux, the rights, the OpenAPI document at /api/v1/openapi.json and
// docs/httpapi.md are made of. No answer is a stream, so that none holds up the Shutdown of the server it is
// mounted in.
//
// It is closed by default: without Options.Authorize only requests from the same machine are served, and those
// only under a name of that machine. [Livez] and [Readyz] are probes to mount beside it, without rights.
package httpapi
