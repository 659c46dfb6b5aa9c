// Package dashboard serves pages for operators of queues: present problems, queues and their
// shards, jobs, one id, running jobs, the morgue, servers and the store. One [http.Handler] serves
// them under any prefix, with the API of package httpapi below api/v1/. The pages read and act
// through the same service as that API. The package imports only the standard library and Skein.
//
//	board, err := dashboard.New(inspect.New(store, inspect.Options{}), dashboard.Options{})
//	// The pages are at /jobs/, the API is at /jobs/api/v1/.
//	mux.Handle("/jobs/", http.StripPrefix("/jobs", board))
//
// # Where to begin
//
//   - [Dashboard] is the http.Handler for one store; [New] makes it.
//   - [Options] are its title and the options of the API, which decide who may do what.
//   - [Stores] serves the dashboards of several stores at one address; [NewStores] makes it.
//
// The server renders the pages, and they work without scripts. With scripts, figures are updated in
// place while the page is visible: every 2 s, or less often if the page's own reads of the store
// are slow. No response is a stream, so no response delays the Shutdown of the HTTP server.
//
// Like the API, the dashboard is closed by default: without Options.API.Authorize it serves only
// requests from the same machine. docs/reference/dashboard.md has the details.
package dashboard
