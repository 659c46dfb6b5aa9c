// Package httpapi serves the methods of package inspect over HTTP, as JSON: for dashboards, scripts
// and programs in other languages, which can push too. It works on every store and imports only the
// standard library and Skein.
//
//	inspector := inspect.New(store, inspect.Options{})
//	api, err := httpapi.New(inspector, httpapi.Options{
//		Authorize: func(r *http.Request, a httpapi.Action) error {
//			if a.Verb != httpapi.VerbView && !isAdmin(r) {
//				return errors.New("only admins may act")
//			}
//			return nil
//		},
//	})
//	mux.Handle("/jobs/", http.StripPrefix("/jobs", api)) // GET /jobs/api/v1/stats
//	mux.Handle("/livez", httpapi.Livez())
//	mux.Handle("/readyz", httpapi.Readyz(inspector, httpapi.HealthOptions{Server: true}))
//
// # Where to begin
//
//   - [API] is the http.Handler; [New] makes it.
//   - [Options] decide who may do what, what is hidden, and the limits of requests.
//   - [Action] is the requested action, which Options.Authorize permits or refuses.
//
// [Livez] and [Readyz] are health checks to mount beside the API.
//
// # Rights
//
// The API is closed by default. Without Options.Authorize it serves only requests from the same
// machine, and only under a name of that machine. With Options.ReadOnly it has no route that
// changes something. The Redact hooks of Options hide payloads, errors and ids.
//
// # Routes
//
// docs/reference/httpapi.md lists the routes, and GET /api/v1/openapi.json returns them as an
// OpenAPI document. Both are made from the same table as the handler. No response is a stream, so
// no response delays the Shutdown of the HTTP server.
package httpapi
