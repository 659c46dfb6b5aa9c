package service

import (
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/shown"
)

// hiding is a service that redacts ids, errors and payloads.
func hiding(t *testing.T) *Service {
	t.Helper()
	s, err := New(nil, Options{
		RedactID:      func(_, _ string) string { return "an id" },
		RedactError:   func(_, _, _ string) string { return "an error" },
		RedactPayload: func(_, _ string, _ []byte) []byte { return []byte("a payload") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each class has a rule: it is shown if nothing is redacted, and hides its text if all is.
func TestEveryClassHasARule(t *testing.T) {
	open, closed := redactor{&Service{}, true}, redactor{hiding(t), true}
	of := shown.Of{Queue: "orders", ID: "secret"}
	for _, class := range shown.Classes() {
		if !open.Shows(class) {
			t.Errorf("%s is hidden though nothing is redacted", class)
		}
		if class == shown.Public || class == shown.Queue || !closed.Shows(class) {
			continue
		}
		if text := closed.Text(class, of, `"secret" secret`); strings.Contains(text, "secret") {
			t.Errorf("%s is shown as %q", class, text)
		}
		if data := closed.Bytes(class, of, []byte("secret")); strings.Contains(string(data), "secret") {
			t.Errorf("%s is shown as %q", class, data)
		}
	}
	if open.Shows("") || open.Shows("other") || open.Text("other", of, "secret") != "" {
		t.Error("a class without a rule is shown")
	}
}

// No text of a record with ids, errors and payloads leaves the service if all are redacted.
func TestARecordIsRedactedAsAWhole(t *testing.T) {
	c := &call{Service: hiding(t), queue: "orders"}
	letter := inspect.DeadLetter{
		ID:          "secret",
		ChangedAt:   time.Unix(1, 0),
		LastFailure: inspect.LastFailure{LastError: "secret", Failures: []inspect.Failure{{On: "web-1", Text: "secret"}}},
		Group:       "secret",
		Tags:        []string{"secret"},
	}
	row := view[inspect.DeadLetter](c, 1).Row(&letter)
	text, err := row.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"an id","changed_at":"1970-01-01T00:00:01Z","last_error":"an error","failures":[{"on":"web-1","text":"an error"}],"group":"` +
		c.groupKey("secret") + `","payload_count":0}`
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	if v := row.Value(); v.ID != "an id" || v.LastError != "an error" || v.Group == "secret" || v.Tags != nil {
		t.Errorf("pages see %+v", v)
	}
}
