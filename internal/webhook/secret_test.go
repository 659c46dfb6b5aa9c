package webhook

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
)

// The published example of the signature scheme.
const (
	exampleSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	exampleID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	exampleBody      = `{"test": 2432232314}`
	exampleSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	secrets, err := ParseSecrets("# the old one\n" + exampleSecret + "\n\n" + otherSecret + " \n")
	must(t, err)
	got := signature(secrets, exampleID, time.Unix(1614265330, 0), []byte(exampleBody))
	first, second, two := strings.Cut(got, " ")
	if first != exampleSignature || !two || !strings.HasPrefix(second, "v1,") || first == second {
		t.Errorf("%s; want %s first", got, exampleSignature)
	}
}

const otherSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func TestSecretsAreChecked(t *testing.T) {
	for _, text := range []string{
		"", "# none\n", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8G", "whsec_=",
		"whsec_" + strings.Repeat("MfKQ", 40),
		exampleSecret + "\nMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", strings.Repeat("x", 70_000),
	} {
		_, err := ParseSecrets(text)
		if !errors.Is(err, core.ErrInvalidOptions) || strings.Contains(err.Error(), "MfKQ") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// Each call is signed with each secret, under an id of its own.
func TestCallsAreSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := map[string]bool{}
		n := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
			id, signed := r.Header.Get("webhook-id"), r.Header.Get("webhook-signature")
			ids[id] = true
			if at := r.Header.Get("webhook-timestamp"); at != "946684800" || len(strings.Fields(signed)) != 2 {
				t.Errorf("%s: %s", at, signed)
			}
		})
		secrets, err := ParseSecrets(exampleSecret + "\n" + otherSecret)
		must(t, err)
		c := caller(t, n, Options{Secrets: secrets})
		for range 3 {
			must(t, c.Handle(t.Context(), jobOf("{}")))
		}
		if len(ids) != 3 || ids[""] {
			t.Errorf("ids of three calls: %v", ids)
		}
	})

	synctest.Test(t, func(t *testing.T) {
		n := receiver(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("webhook-id")+r.Header.Get("webhook-signature") != "" {
				t.Error("a call without a secret is signed")
			}
		})
		must(t, caller(t, n, Options{}).Handle(t.Context(), jobOf("{}")))
	})
}
