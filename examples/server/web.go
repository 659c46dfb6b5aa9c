package main

import (
	"context"
	"errors"
	"expvar"
	"net/http"
	"strconv"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
)

// routes returns the server's routes. It is ready while the store answers, the server of jobs
// renews its leases, and ctx has not ended. The dashboard is at /jobs/ with the API below
// /jobs/api/v1, for this machine alone.
func routes(ctx context.Context, store skein.Store, client *skein.Client) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.Atoi(r.FormValue("number"))
		if err != nil || r.FormValue("what") == "" {
			http.Error(w, "give the event a number, and say what has happened", http.StatusBadRequest)
			return
		}

		err = orders.Push(r.Context(), client, r.PathValue("id"), event{number, r.FormValue("what")})
		switch {
		case err == nil:
		case errors.Is(err, skein.ErrInvalidID), errors.Is(err, skein.ErrInvalidPayload):
			http.Error(w, err.Error(), http.StatusBadRequest)
		default: // the sender should repeat the push: entries that are stored already merge
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})

	inspector := inspect.New(store, inspect.Options{})
	// To serve other machines too, set API.Authorize and API.Actor.
	board, err := dashboard.New(inspector, dashboard.Options{Title: "orders", API: httpapi.Options{}})
	if err != nil {
		return nil, err
	}

	mux.Handle("/jobs/", http.StripPrefix("/jobs", board))
	mux.Handle("GET /livez", httpapi.Livez())
	ready := httpapi.Readyz(inspector, httpapi.HealthOptions{Server: true})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		ready.ServeHTTP(w, r)
	})

	mux.Handle("GET /debug/vars", expvar.Handler())
	return mux, nil
}
