package webhook

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
)

// The body of a request has the job, and payloads that are JSON with the numbers and strings that
// were pushed.
func TestTheBodyOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		n := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			must(t, err)
			got = string(text)
			if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" ||
				r.URL.RequestURI() != "/jobs?key=of-the-url" || r.ContentLength != int64(len(text)) {
				t.Errorf("%s %s: %v", r.Method, r.URL, r.Header)
			}
		})

		job := jobOf(`{"b": 1.0, "big":12345678901234567890,"a":"<&\u003c"}`, "null", `"`+"\xff"+`"`, "plain", "")
		job.Payloads[1].Meta = []byte("trace")
		job.ID, job.Retries, job.Recoveries, job.Tags = `Zoë "<1>"`, 2, 1, []string{"import"}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		must(t, caller(t, n, Options{}).Handle(ctx, job))

		const want = `{"version":1,"queue":"orders","id":"Zoë \"<1>\"","attempt":3,"recoveries":1,"fencing_token":0,` +
			`"deadline":"2000-01-01T00:00:30Z","tags":["import"],"payloads":[` +
			`{"payload":{"b":1.0,"big":12345678901234567890,"a":"<&\u003c"},"score":0},` +
			`{"payload":null,"score":1,"meta_base64":"dHJhY2U="},` +
			`{"data_base64":"Iv8i","score":2},{"data_base64":"cGxhaW4=","score":3},{"data_base64":"","score":4}]}`
		if got != want {
			t.Errorf("\n%s, want\n%s", got, want)
		}

		job = &skein.Job[[]byte]{ID: "42"}
		must(t, caller(t, n, Options{}).Handle(t.Context(), job))
		const least = `{"version":1,"queue":"orders","id":"42","attempt":1,"recoveries":0,"fencing_token":0,"payloads":[]}`
		if got != least {
			t.Errorf("\n%s, want\n%s", got, least)
		}
	})
}
