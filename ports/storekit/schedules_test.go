package storekit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func nightly() core.Schedule {
	return core.Schedule{
		ScheduleKey: core.ScheduleKey{ID: "a", Name: "nightly"},
		Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte("report")},
		Next:        5,
		Revision:    1,
	}
}

// A record is read if a store would take its schedule. The reason why one is not names what is
// wrong with it, in words of our own.
func TestDecodeScheduleReadsWhatAStoreTakes(t *testing.T) {
	s := nightly()
	text, err := storekit.EncodeSchedule(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, newer := range []string{text, strings.Replace(text, "{", `{"moon":"full",`, 1), strings.Replace(text, "every 1h0m0s 0", "moon full", 1)} {
		if _, err := storekit.DecodeSchedule(s.ScheduleKey, newer); err != nil {
			t.Errorf("%s can't be read: %v", newer, err)
		}
	}

	for _, test := range []struct{ old, with, want string }{
		{text, "", "it is no JSON object"},
		{text, "?", "it is no JSON object"},
		{text, "[]", "it is no JSON object"},
		{"}", "", "it is no JSON object"},
		{text, "null", "it is not of its id and name"},
		{`"nightly"`, `"weekly"`, "it is not of its id and name"},
		{`"id":"a"`, `"id":"b"`, "it is not of its id and name"},
		{`"revision":1`, `"revision":0`, "it has no revision"},
		{`"revision":1`, `"revision":9007199254740992`, "it has no revision"},
		{`"every 1h0m0s 0"`, "5", "its member spec is a number, which is the wrong type"},
		{`"next":5`, `"next":"soon"`, "its member next is a string, which is the wrong type"},
		{`"cmVwb3J0"`, `"?"`, "its data or meta is no base64 text"},
		{`"next":5`, `"next":-5`, "it breaks a rule of this version: invalid schedule: the time 1969-12-31"},
		{`"revision":1`, `"revision":1,"catchup":{"most":5000}`, "give 1 to 1000"},
	} {
		damaged := strings.Replace(text, test.old, test.with, 1)
		if test.old == "}" {
			damaged = text[:len(text)-1]
		}
		_, err := storekit.DecodeSchedule(s.ScheduleKey, damaged)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "json:") {
			t.Errorf("%s: the reason is %v, want %q", damaged, err, test.want)
			continue
		}
		want := "schedule nightly: " + err.Error() + "; create the schedule again, and discard this record"
		if got := storekit.UnreadableSchedule("nightly", err); got != want {
			t.Errorf("the reason is %q, want %q", got, want)
		}
	}
}

// The results of repeated changes come in the place of those that were refused.
func TestRepeatRefusedRepeatsOnlyRefusedChanges(t *testing.T) {
	r := &ports.ChangeSchedulesRequest{Shards: 3, Changes: make([]ports.ScheduleChange, 4)}
	for i, id := range []string{"a", "b", "c", "d"} {
		r.Changes[i].ID = id
	}
	const changed, refused = ports.ScheduleChanged, ports.ScheduleRefused
	reply := ports.ChangeSchedulesReply{Now: 1, Results: []ports.ScheduleResult{refused, changed, refused}}
	reply.Met.New = 1

	storekit.RepeatRefused(r, &reply, func(*ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
		return ports.ChangeSchedulesReply{}, errors.New("away")
	})
	if reply.Now != 1 || reply.Results[0] != refused {
		t.Errorf("a failed repeat changed the reply to %+v", reply)
	}

	storekit.RepeatRefused(r, &reply, func(again *ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
		if len(again.Changes) != 2 || again.Changes[0].ID != "a" || again.Changes[1].ID != "c" || again.Shards != 3 {
			t.Errorf("repeated: %+v", again)
		}
		next := ports.ChangeSchedulesReply{Now: 2, Results: []ports.ScheduleResult{refused, changed}, Head: core.Head{Due: 7, OK: true}}
		next.Met.New = 1
		return next, nil
	})
	if reply.Now != 2 || reply.Head.Due != 7 || reply.Met.New != 2 ||
		reply.Results[0] != refused || reply.Results[1] != changed || reply.Results[2] != changed || len(r.Changes) != 4 {
		t.Errorf("the reply is %+v", reply)
	}
}
