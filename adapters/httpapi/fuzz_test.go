package httpapi

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/skeinq/skein/internal/service"
)

// Every body is read as it was written or refused as the client's fault, and a body that was read
// can be written and read again.
func FuzzBody(f *testing.F) {
	for _, s := range samples {
		f.Add(s.body)
	}
	f.Add(`{"ids":["\ud83d\ude00","\\ud800","\ud800"]}`)
	f.Add(`{"payloads":[{"id":"a","payloads":[{"data_base64":"/w=="}]}]}`)
	header := http.Header{"Content-Type": {"application/json"}}
	f.Fuzz(func(t *testing.T, text string) {
		var body service.MorgueBody
		err := decodeBody(header, strings.NewReader(text), &body, nil)
		var p *service.Problem
		if err != nil {
			if !errors.As(err, &p) || p.Status != http.StatusBadRequest {
				t.Fatalf("%v of %q", err, text)
			}
			return
		}
		for _, id := range body.IDs {
			if !utf8.ValidString(id) {
				t.Fatalf("id %q of %q", id, text)
			}
			if strings.ContainsRune(id, utf8.RuneError) && !strings.ContainsRune(text, utf8.RuneError) &&
				!strings.Contains(strings.ToLower(text), `\ufffd`) {
				t.Fatalf("%q of %q was mended", id, text)
			}
		}
		for _, letter := range body.Payloads {
			for _, o := range letter.Payloads {
				data, err := o.Bytes()
				if err != nil {
					continue
				}
				again := service.OctetsOf(data)
				if twice, err := again.Bytes(); err != nil || string(twice) != string(data) {
					t.Fatalf("%q became %q, %v", data, twice, err)
				}
			}
		}
	})
}

// Whatever a query is, it is read or refused as the client's fault.
func FuzzQuery(f *testing.F) {
	for _, s := range samples {
		f.Add(s.query)
	}
	f.Add("sort=id&after=AA&desc=1&limit=5&shard=1&shard=2&from=2026-01-02T15:04:05Z&prefix=%C3%A9&fresh=true&payloads=9")
	f.Fuzz(func(t *testing.T, raw string) {
		for _, route := range table() {
			if route.query == nil {
				continue
			}
			var p *service.Problem
			in := reflect.New(route.query)
			if err := decodeQuery(raw, in.Elem()); err != nil &&
				(!errors.As(err, &p) || p.Status != http.StatusBadRequest) {
				t.Fatalf("%v of %q", err, raw)
			}
		}
	})
}

// Whatever Accept is, it leads to a format or a refusal.
func FuzzAccept(f *testing.F) {
	f.Add("text/csv;q=0.5, application/json;q=0.1, */*;q=NaN")
	f.Fuzz(func(t *testing.T, accept string) {
		r := &http.Request{Header: http.Header{"Accept": {accept}}}
		if format, err := accepted(r, true); err == nil && format.write == nil {
			t.Fatalf("%q: no format and no error", accept)
		}
	})
}
