package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A page beside the API is refused to whom every route of the API is, before rights, and else is
// served.
func TestGuardRefusesWhatTheAPIRefuses(t *testing.T) {
	h := newHouse(t, Options{
		Hosts:     []string{"localhost"},
		Authorize: func(*http.Request, Action) error { return errors.New("no") },
	})
	page := h.api.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	if w := answerOf(page, request(http.MethodGet, "/page", "")); w.Code != http.StatusTeapot {
		t.Errorf("a page: status %d", w.Code)
	}
	foreign := request(http.MethodGet, "/page", "")
	foreign.Host = "evil.example"
	refused(t, "a foreign host", answerOf(page, foreign), http.StatusMisdirectedRequest, "foreign-host")
	other := request(http.MethodPost, "/page", "{}")
	other.Header.Set("Sec-Fetch-Site", "cross-site")
	refused(t, "another site", answerOf(page, other), http.StatusForbidden, "cross-origin")

	closed := newHouse(t, Options{})
	far := request(http.MethodGet, "/page", "")
	far.RemoteAddr = "192.0.2.7:99"
	refused(t, "another machine", answerOf(closed.api.Guard(page), far), http.StatusForbidden, "closed")
}

// A client without credentials is asked for them, by the API as by a browser. A client with
// credentials but without the right is refused.
func TestUnauthenticatedRequestsAreAskedForCredentials(t *testing.T) {
	h := newHouse(t, Options{Authorize: func(r *http.Request, a Action) error {
		if name, password, ok := r.BasicAuth(); !ok || name != "ann" || password != "secret" {
			return fmt.Errorf("who is there: %w", ErrUnauthenticated)
		}
		if a.Verb != VerbView {
			return errors.New("ann only looks")
		}
		return nil
	}})
	ask := func(method, path, password string) *httptest.ResponseRecorder {
		r := request(method, base+path, map[string]string{http.MethodPost: "{}"}[method])
		r.RemoteAddr, r.Host = "192.0.2.7:99", "ops.example"
		if password != "" {
			r.SetBasicAuth("ann", password)
		}
		return answerOf(h.api, r)
	}
	for _, password := range []string{"", "wrong"} {
		w := ask(http.MethodGet, "/stats", password)
		refused(t, "the password "+password, w, http.StatusUnauthorized, "unauthenticated")
		if got := w.Header().Get("WWW-Authenticate"); got != `Basic realm="skein", charset="UTF-8"` {
			t.Errorf("it is asked for by %q", got)
		}
	}
	if w := ask(http.MethodGet, "/stats", "secret"); w.Code != http.StatusOK {
		t.Errorf("with the password: status %d", w.Code)
	}
	w := ask(http.MethodPost, "/queues/orders/pause", "secret")
	refused(t, "an action", w, http.StatusForbidden, "forbidden")
	if w.Header().Get("WWW-Authenticate") != "" {
		t.Error("who is known is asked for credentials again")
	}
}

// The answer to a host name that is refused for want of Authorize names that reason: Hosts would
// not help.
func TestAForeignHostIsToldWhatToDo(t *testing.T) {
	for what, tt := range map[string]struct {
		o    Options
		want string
	}{
		"without Authorize": {Options{}, "set Authorize"},
		"with Hosts":        {Options{Hosts: []string{"ops.example"}}, "Options.Hosts"},
	} {
		r := request(http.MethodGet, base+"/stats", "")
		r.Host = "other.example"
		if p := refused(t, what,
			answerOf(newHouse(t, tt.o).api, r),
			http.StatusMisdirectedRequest, "foreign-host"); !strings.Contains(p.Detail, tt.want) {
			t.Errorf("%s it says %q, want %q", what, p.Detail, tt.want)
		}
	}
}
