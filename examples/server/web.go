package main

import (
	"context"
	"errors"
	"expvar"
	"net/http"
	"strconv"
	"time"

	"github.com/skeinq/skein"
)

// routes returns what the server answers to. It is ready while the store answers and ctx
// has not ended.
func routes(ctx context.Context, store skein.Store, client *skein.Client) http.Handler {
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
		default: // the sender repeats it: what is stored already merges
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		asked, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if err := store.Ping(asked); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.Handle("GET /debug/vars", expvar.Handler())
	return mux
}
