// Package dashboard is the pages for people who look after queues: what is wrong now, queues and their shards, jobs, one id, what runs, the morgue,
// servers and the store. One [http.Handler] serves them under any prefix, with the API of package httpapi below api/v1/, which pages get their lists from
// and act by. It needs nothing but the standard library.
//
//	board, err := dashboard.New(inspect.New(store, inspect.Options{}), dashboard.Options{})
//	mux.Handle("/jobs/", http.StripPrefix("/jobs", board)) // the pages at /jobs/, the API at /jobs/api/v1/
//
// [NewStores] serves the dashboards of several stores at one address.
//
// Pages are made by the server and work without scripts. With them, figures are replaced in place every 2 s as long as the page is looked at. No answer
// is a stream, so that none holds up the Shutdown of the server it is mounted in.
//
// It is closed by default, as the API is: without Options.API.Authorize only requests from the same machine are served. docs/dashboard.md has the rest.
package dashboard
