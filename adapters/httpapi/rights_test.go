package httpapi

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// rights are requests of every route, in each form that names its target differently, and the
// actions that Authorize must be asked for: with the queue and the ids that the request names,
// wherever it names them.
var rights = []struct {
	route       string
	query, body string
	want        []Action
}{
	{"GET /stats", "", "", []Action{{Verb: VerbView}}},
	{"GET /stats", "queue=orders", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues", "", "", []Action{{Verb: VerbView}}},
	{"GET /queues/{queue}", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/history", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/jobs", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/jobs", "payloads=1", "", []Action{{Verb: VerbViewPayload, Queue: "orders"}}},
	{"GET /queues/{queue}/claimed", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/claimed", "payloads=1", "", []Action{{Verb: VerbViewPayload, Queue: "orders"}}},
	{"GET /queues/{queue}/morgue", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/morgue", "payloads=1", "", []Action{{Verb: VerbViewPayload, Queue: "orders"}}},
	{"GET /queues/{queue}/past", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/groups", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/quarantine", "", "", []Action{{Verb: VerbViewPayload, Queue: "orders"}}},
	{"GET /queues/{queue}/tracked", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/rate", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/payloads", "id=a", "",
		[]Action{{Verb: VerbViewPayload, Queue: "orders", IDs: []string{"a"}}}},
	{"GET /queues/{queue}/schedules", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/schedules", "id=a", "", on(VerbView, "a")},
	{"GET /queues/{queue}/schedules", "name=nightly&payloads=1", "",
		[]Action{{Verb: VerbViewPayload, Queue: "orders"}}},
	{"GET /queues/{queue}/schedules/names", "", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /queues/{queue}/schedule", "name=nightly&id=a", "", on(VerbView, "a")},
	{"GET /queues/{queue}/schedule", "name=nightly&id=a&payloads=1", "", on(VerbViewPayload, "a")},
	{"GET /errors", "", "", []Action{{Verb: VerbView}}},
	{"GET /errors", "queue=orders", "", []Action{{Verb: VerbView, Queue: "orders"}, {Verb: VerbView}}},
	{"GET /find", "id=a", "", []Action{{Verb: VerbView, IDs: []string{"a"}}}},
	{"GET /find", "id=a&payloads=1", "", []Action{{Verb: VerbViewPayload, IDs: []string{"a"}}}},
	{"GET /find", "queue=orders&id=a", "", []Action{{Verb: VerbView, Queue: "orders", IDs: []string{"a"}}}},
	{"GET /find", "queue=orders&id=a&payloads=1", "",
		[]Action{{Verb: VerbViewPayload, Queue: "orders", IDs: []string{"a"}}}},
	{"GET /why", "queue=orders&id=a", "", []Action{{Verb: VerbView, Queue: "orders", IDs: []string{"a"}}}},
	{"GET /nodes", "", "", []Action{{Verb: VerbView}}},
	{"GET /audit", "", "", []Action{{Verb: VerbView}}},
	{"GET /audit", "queue=orders", "", []Action{{Verb: VerbView, Queue: "orders"}}},
	{"GET /checks", "", "", []Action{{Verb: VerbView}}},
	{"GET /openapi.json", "", "", []Action{{Verb: VerbView}}},

	{"POST /queues/{queue}/jobs", "", samples["POST /queues/{queue}/jobs"].body, on(VerbPush, "a", "b")},
	{"POST /queues/{queue}/pause", "", `{}`, []Action{{Verb: VerbPause, Queue: "orders"}}},
	{"POST /queues/{queue}/resume", "", `{}`, []Action{{Verb: VerbResume, Queue: "orders"}}},
	{"POST /queues/{queue}/settings", "", `{"set":{"max-running":"20"}}`, []Action{{Verb: VerbConfigure, Queue: "orders"}}},
	{"POST /queues/{queue}/merge", "", `{"merge":"newest"}`, []Action{{Verb: VerbSetMerge, Queue: "orders"}}},
	{"POST /queues/{queue}/rate/stop", "", `{"seconds":60}`, []Action{{Verb: VerbStopRate, Queue: "orders"}}},
	{"POST /queues/{queue}/rate/resume", "", `{}`, []Action{{Verb: VerbStopRate, Queue: "orders"}}},
	{"POST /queues/{queue}/forget", "", `{}`, []Action{{Verb: VerbForget, Queue: "orders"}}},
	{"POST /queues/{queue}/recount", "", `{}`, []Action{{Verb: VerbRecount, Queue: "orders"}}},
	{"POST /queues/{queue}/jobs/run-now", "", `{"ids":["a","b"]}`, on(VerbRunNow, "a", "b")},
	{"POST /queues/{queue}/jobs/run-now", "", `{"match":{}}`, onMatch(VerbRunNow)},
	{"POST /queues/{queue}/jobs/run-now", "", `{"match":{},"dry_run":true}`, onMatch(VerbRunNow)},
	{"POST /queues/{queue}/jobs/release", "", `{"ids":["a","b"]}`, on(VerbRelease, "a", "b")},
	{"POST /queues/{queue}/jobs/release", "", `{"match":{}}`, onMatch(VerbRelease)},
	{"POST /queues/{queue}/jobs/bury-first", "", firsts, on(VerbBury, "a", "b")},
	{"POST /queues/{queue}/jobs/delete-first", "", firsts, on(VerbDelete, "a", "b")},
	{"POST /queues/{queue}/jobs/bury", "", `{"ids":["a","b"]}`, on(VerbBury, "a", "b")},
	{"POST /queues/{queue}/jobs/bury", "", `{"match":{}}`, onMatch(VerbBury)},
	{"POST /queues/{queue}/jobs/delete", "", `{"ids":["a","b"]}`, on(VerbDelete, "a", "b")},
	{"POST /queues/{queue}/jobs/delete", "", `{"match":{}}`, onMatch(VerbDelete)},
	{"POST /queues/{queue}/jobs/move", "", `{"ids":["a","b"],"to":"moved"}`, toMoved(on(VerbMove, "a", "b"))},
	{"POST /queues/{queue}/jobs/move", "", `{"match":{},"to":"moved"}`, toMoved(onMatch(VerbMove))},
	{"POST /queues/{queue}/claimed/cancel", "", `{"ids":["a","b"]}`, on(VerbCancel, "a", "b")},
	{"POST /queues/{queue}/morgue/revive", "", `{"ids":["a","b"]}`, on(VerbRevive, "a", "b")},
	{"POST /queues/{queue}/morgue/revive", "", singles, on(VerbRevive, "a", "b")},
	{"POST /queues/{queue}/morgue/revive", "", `{"match":{}}`, onMatch(VerbRevive)},
	{"POST /queues/{queue}/morgue/purge", "", `{"ids":["a","b"]}`, on(VerbPurge, "a", "b")},
	{"POST /queues/{queue}/morgue/purge", "", singles, on(VerbPurge, "a", "b")},
	{"POST /queues/{queue}/morgue/purge", "", `{"match":{}}`, onMatch(VerbPurge)},
	{"POST /queues/{queue}/morgue/move", "", `{"match":{},"to":"moved"}`, toMoved(onMatch(VerbMove))},
	{"POST /queues/{queue}/morgue/edit", "", `{"id":"a","edits":[{"old":{"data":"p"},"new":{"data":"q"}}]}`,
		on(VerbEdit, "a")},
	{"POST /queues/{queue}/jobs/edit", "", `{"id":"a","edits":[{"old":{"data":"p"},"new":{"data":"q"}}]}`,
		on(VerbEdit, "a")},
	{"POST /queues/{queue}/quarantine/discard", "", `{"shard":0,"keys":["k"]}`, on(VerbDiscard)},
	{"POST /queues/{queue}/tracked/add", "", `{"id":"a"}`, on(VerbTrack, "a")},
	{"POST /queues/{queue}/tracked/remove", "", `{"id":"a"}`, on(VerbTrack, "a")},
	{"POST /queues/{queue}/schedules/pause", "", `{"name":"nightly"}`, onMatch(VerbPauseSchedule)},
	{"POST /queues/{queue}/schedules/pause", "", `{"name":"nightly","id":"a"}`, on(VerbPauseSchedule, "a")},
	{"POST /queues/{queue}/schedules/resume", "", `{"id":"a"}`, on(VerbPauseSchedule, "a")},
	{"POST /queues/{queue}/schedules/resume", "", `{"name":"nightly"}`, onMatch(VerbPauseSchedule)},
	{"POST /queues/{queue}/schedules/run", "", `{"id":"a"}`, on(VerbRunSchedule, "a")},
	{"POST /queues/{queue}/schedules/run", "", `{"name":"nightly"}`, onMatch(VerbRunSchedule)},
	{"POST /queues/{queue}/schedules/backfill", "", samples["POST /queues/{queue}/schedules/backfill"].body,
		on(VerbRunSchedule, "a")},
	{"POST /queues/{queue}/schedules/edit", "", `{"id":"a","skip":true}`, on(VerbEditSchedule, "a")},
	{"POST /queues/{queue}/schedules/edit", "", `{"name":"nightly","skip":true}`, onMatch(VerbEditSchedule)},
	{"POST /queues/{queue}/schedules/remove", "", `{"id":"a"}`, on(VerbRemoveSchedule, "a")},
	{"POST /queues/{queue}/schedules/remove", "", `{"name":"nightly"}`, onMatch(VerbRemoveSchedule)},
	{"POST /nodes/drain", "", `{"node":"blue"}`, []Action{{Verb: VerbDrain, Node: "blue"}}},
	{"POST /nodes/resume", "", `{"node":"blue"}`, []Action{{Verb: VerbDrain, Node: "blue"}}},
}

// firsts and singles are bodies that name payloads of two ids.
const (
	firsts  = `{"first":[{"id":"a","payload":{"data":"p"}},{"id":"b","payload":{"data":"p"}}]}`
	singles = `{"payloads":[{"id":"a","payloads":[{"data":"p"}]},{"id":"b","payloads":[{"data":"p"}]}]}`
)

// on is an action on ids of the queue.
func on(verb Verb, ids ...string) []Action { return []Action{{Verb: verb, Queue: "orders", IDs: ids}} }

// onMatch is an action on all entries of the queue that match.
func onMatch(verb Verb) []Action { return []Action{{Verb: verb, Queue: "orders", Bulk: true}} }

// toMoved adds the same action on the queue that a move has as its target.
func toMoved(of []Action) []Action {
	other := of[0]
	other.Queue = "moved"
	return append(of, other)
}

// Every request asks for the whole right that it needs, before it does anything. So an Authorize
// that decides by verb, queue or id refuses exactly the requests about them.
func TestEveryRouteAsksForItsRight(t *testing.T) {
	var asked []Action
	h := newHouse(t, Options{Authorize: func(_ *http.Request, a Action) error { asked = append(asked, a); return nil }})
	h.dead("boom", "a")
	routes := map[string]bool{}
	for _, r := range rights {
		routes[r.route] = true
		method, path, _ := strings.Cut(r.route, " ")
		target := base + strings.ReplaceAll(path, "{queue}", "orders")
		if r.query != "" {
			target += "?" + r.query
		}
		asked = nil
		request := request(method, target, r.body)
		request.RemoteAddr, request.Host = "192.0.2.7:1", "any.example"
		answerOf(h.api, request)
		if !reflect.DeepEqual(asked, r.want) {
			t.Errorf("%s %s %s: asked for %+v, want %+v", method, target, r.body, asked, r.want)
		}
	}
	for _, route := range table() {
		if !routes[route.method+" "+route.path] {
			t.Errorf("no right of %s %s is listed", route.method, route.path)
		}
	}
}
