package dashboard

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// A live update of a queue with a past has a fraction of its bytes where the client accepts gzip.
func TestPagesAreCompressed(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("large", 200)
	get := func(target, accept, site string) *httptest.ResponseRecorder {
		r := request(http.MethodGet, target, nil)
		r.Header.Set("Accept-Encoding", accept)
		r.Header.Set("Sec-Fetch-Site", site)
		w := answerOf(h.board, r)
		if !strings.HasPrefix(w.Header().Get("Vary"), "Accept-Encoding") {
			t.Errorf("%q has the header Vary %q", target, w.Header().Get("Vary"))
		}
		if n := w.Header().Get("Content-Length"); n != strconv.Itoa(w.Body.Len()) && w.Code != http.StatusNotModified {
			t.Errorf("%d bytes have the Content-Length %s", w.Body.Len(), n)
		}
		return w
	}
	plain := get("/queue?q=large", "", "same-origin")
	small := get("/queue?q=large", "gzip, deflate, br", "same-origin")
	if small.Header().Get("Content-Encoding") != "gzip" || small.Body.Len() > plain.Body.Len()/3 {
		t.Errorf("of %d bytes %d are sent as %q",
			plain.Body.Len(), small.Body.Len(), small.Header().Get("Content-Encoding"))
	}
	if small.Header().Get("ETag") != plain.Header().Get("ETag") {
		t.Error("the page has two tags")
	}
	reader, err := gzip.NewReader(bytes.NewReader(small.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(whole, plain.Body.Bytes()) {
		t.Errorf("what was compressed is another page, or %v", err)
	}
	sheet := "/" + asset("dashboard.css")
	if plain, small := get(sheet, "", "same-origin"), get(
		sheet, "gzip", "same-origin",
	); small.Header().Get("Content-Encoding") != "gzip" ||
		small.Body.Len() > plain.Body.Len()/3 {
		t.Errorf("of the %d bytes of the style sheet %d are sent", plain.Body.Len(), small.Body.Len())
	}
	for _, tt := range []struct {
		accept, site, encoding string
	}{
		{"gzip", "same-origin", "gzip"},
		{"gzip", "none", "gzip"},
		{"gzip", "", "gzip"},
		{"br, GZIP;q=0.5", "", "gzip"},
		{"*", "", "gzip"},
		{"gzip", "cross-site", ""},
		{"gzip", "same-site", ""},
		{"br", "", ""},
		{"gzip;q=0", "", ""},
		{"gzip;q=0, *", "", ""},
		{"*;q=0", "", ""},
		{"", "", ""},
	} {
		if got := get("/queue?q=large", tt.accept, tt.site).Header().Get("Content-Encoding"); got != tt.encoding {
			t.Errorf("Accept-Encoding %q of %q is answered with %q, want %q", tt.accept, tt.site, got, tt.encoding)
		}
	}
}

func TestTinyPagesAreNotCompressed(t *testing.T) {
	r := request(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	send(w, r, http.StatusOK, []byte("tiny"))
	if w.Header().Get("Content-Encoding") != "" || w.Body.String() != "tiny" {
		t.Errorf("tiny is sent as %q", w.Body)
	}
}
