package httpapi

import (
	"errors"
	"net/http"
	"testing"
)

// A page beside the API is refused to whom every route of the API is, before rights, and else is served.
func TestGuardRefusesWhatTheAPIRefuses(t *testing.T) {
	h := newHouse(t, Options{Hosts: []string{"localhost"}, Authorize: func(*http.Request, Action) error { return errors.New("no") }})
	page := h.api.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
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
