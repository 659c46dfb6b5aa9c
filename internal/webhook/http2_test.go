package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
)

// Over HTTP/2, whose connections all calls share, the bounds of answers are the same.
func TestHostileAnswersOverHTTP2(t *testing.T) {
	for name, tt := range hostile {
		if name == "no HTTP" || name == "a body that breaks off" || name == "a body that drips is cut off" {
			continue // HTTP/2 has no such answers, or other errors; nor is there virtual time for a drip
		}
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(io.Discard, r.Body); err != nil || r.ProtoMajor != 2 {
					t.Errorf("%s: %v", r.Proto, err)
				}
				tt.receive(w, r)
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()

			c, err := New("orders", Options{URL: server.URL})
			must(t, err)
			c.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
			defer c.Close()

			patience := 5 * time.Minute
			if strings.Contains(tt.want, "cut off") {
				patience = 50 * time.Millisecond // by which this call ends, on a slow machine too
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, skein.ErrTimeout)
			defer cancel()
			got := outcome(c.Handle(ctx, jobOf("{}")))
			want, _, _ := strings.Cut(tt.want, ": ")
			if !strings.HasPrefix(got, want) || len(got) > 3000 {
				t.Errorf("%.200q, want %.200q", got, want)
			}
		})
	}
}
