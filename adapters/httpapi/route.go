package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/skeinq/skein/internal/service"
)

// base is the beginning of all routes.
const base = "/api/v1"

// reasonHeader is the header of an action in which a client states its reason.
const reasonHeader = "Skein-Reason"

// bodyTime is how long a client may take to send a body.
const bodyTime = 5 * time.Second

// route is a row of the table from which the mux, rights, OpenAPI document, reference and tests
// are made.
type route struct {
	method, path string // path is below base
	verb         Verb
	summary      string
	// query is the type of the input in the request's URL, body that of the input in its body, and
	// reply that of the answer. nil means no such input.
	query, body, reply reflect.Type
	// anyJSON are the names of the fields of body that take any JSON.
	anyJSON map[string]bool
	// rows is true if the reply is a list, which is also available as JSON lines and CSV. polled is
	// true if the reply has an ETag.
	rows, polled bool
	time         time.Duration
	// asks returns the requested action for an input. The input is a pointer to the type of query
	// or body.
	asks func(queue string, in any) service.Action
	run  func(ctx context.Context, a *API, who *service.Caller, queue string, in any) (any, error)
}

// action reports whether the route changes something.
func (r *route) action() bool { return r.method == http.MethodPost }

// routeOf is the route of an operation.
func routeOf[I, R any](path, summary string, o service.Op[I, R]) route {
	r := route{
		method:  http.MethodGet,
		path:    path,
		verb:    Verb(o.Verb),
		summary: summary,
		time:    o.Time,
		reply:   reflect.TypeFor[R](),
		asks:    func(queue string, in any) service.Action { return o.Asks(queue, in.(*I)) },
		run: func(ctx context.Context, _ *API, who *service.Caller, queue string, in any) (any, error) {
			return o.Do(ctx, who, queue, in.(*I))
		},
	}

	if o.Acts {
		r.method, r.body = http.MethodPost, reflect.TypeFor[I]()
		r.anyJSON = anyJSONFields(r.body)
	} else {
		r.query = reflect.TypeFor[I]()
	}

	_, r.rows = reflect.TypeFor[*R]().MethodByName("Rows")
	return r
}

// documentRoute is the route of the document of all routes.
func documentRoute() route {
	r := routeOf("/openapi.json", "This API as an OpenAPI 3.1 document", service.Nothing)
	r.reply = reflect.TypeFor[json.RawMessage]()
	allowed := r.run
	r.run = func(ctx context.Context, a *API, who *service.Caller, queue string, in any) (any, error) {
		_, err := allowed(ctx, a, who, queue, in)
		return &a.document, err
	}
	return r
}

// polled returns the route with an ETag, for a reply that clients request again and again.
func polled(r route) route {
	r.polled = true
	return r
}

// table returns all routes.
func table() []route {
	return append([]route{
		polled(routeOf("/stats", "Sizes and lag of all queues, or of one", service.Stats)),
		polled(routeOf("/queues", "The queues", service.Queues)),
		polled(routeOf("/queues/{queue}", "Sizes and lag of a queue and of each of its shards", service.QueueStats)),
		polled(routeOf("/queues/{queue}/history",
			"Results of a queue's jobs, by minute, by day or another step", service.History)),
		polled(routeOf("/queues/{queue}/jobs", "The queued jobs", service.Jobs)),
		polled(routeOf("/queues/{queue}/claimed", "The jobs that servers have claimed", service.Claimed)),
		polled(routeOf("/queues/{queue}/morgue", "The dead letters", service.Morgue)),
		polled(routeOf("/queues/{queue}/past",
			"The records of what became of ids: the last run of each that was done, newest first", service.Past)),
		polled(routeOf("/queues/{queue}/groups", "The groups of dead letters with the same error", service.Groups)),
		polled(routeOf("/queues/{queue}/quarantine", "The records that can't be read", service.Quarantine)),
		polled(routeOf("/queues/{queue}/tracked",
			"The tracked ids, each with the reason why its job does not run", service.Tracked)),
		polled(routeOf("/queues/{queue}/payloads", "The payloads of an id, lowest score first", service.Payloads)),
		polled(routeOf("/queues/{queue}/rate",
			"The rate at which jobs of a queue start, and its limiters, the one furthest ahead first", service.Rate)),
		polled(routeOf("/queues/{queue}/schedules", "The schedules", service.Schedules)),
		polled(routeOf("/queues/{queue}/schedules/names",
			"The names of the schedules, with the number of schedules of each", service.ScheduleNames)),
		polled(routeOf("/queues/{queue}/schedule", "A schedule, with its next ticks", service.Schedule)),
		polled(routeOf("/errors",
			"The errors of jobs that retry, of held jobs and of dead letters, over all queues", service.Errors)),
		polled(routeOf("/find", "The jobs and dead letters of an id, and its last run that was done", service.Find)),
		polled(routeOf("/why", "Why the job of an id does not run", service.Why)),
		polled(routeOf("/nodes", "The servers, including those gone within the last hour", service.Nodes)),
		polled(routeOf("/audit", "The last 1,000 actions of operators on all queues, newest first", service.Audit)),
		polled(routeOf("/checks", "Checks of the store's servers", service.Checks)),
		polled(documentRoute()),
	}, actions()...)
}

// actions returns the routes that change something.
func actions() []route {
	return []route{
		routeOf("/queues/{queue}/pause", "Stop claims from a queue", service.Pause),
		routeOf("/queues/{queue}/resume", "End a pause", service.Resume),
		routeOf("/queues/{queue}/merge", "Change the merge rule of a queue, for its next merges", service.SetMerge),
		routeOf("/queues/{queue}/settings",
			"Change settings of a queue, which its servers follow within seconds", service.Configure),
		routeOf("/queues/{queue}/rate/stop",
			"Let no job of a queue with a rate start for a while; a longer stop stays", service.StopRate),
		routeOf("/queues/{queue}/rate/resume", "End a stop of the rate of a queue; no burst follows", service.ResumeRate),
		routeOf("/queues/{queue}/forget", "Remove an empty queue that no server runs", service.Forget),
		routeOf("/queues/{queue}/recount", "Count a queue's jobs one by one and correct its figures", service.Recount),
		routeOf("/queues/{queue}/jobs/run-now",
			"Make queued jobs due, by id or all that match; held jobs are released", service.RunNow),
		routeOf("/queues/{queue}/jobs/release", "Release held jobs, by id or all that match", service.Release),
		routeOf("/queues/{queue}/jobs/bury-first",
			"Move the first payloads of queued jobs to the morgue; held jobs continue with the others",
			service.BuryFirst),
		routeOf("/queues/{queue}/jobs/delete-first",
			"Remove the first payloads of queued jobs; held jobs continue with the others", service.DeleteFirst),
		routeOf("/queues/{queue}/jobs/bury",
			"Move whole queued jobs to the morgue, by id or all that match and have failed or are held", service.Bury),
		routeOf("/queues/{queue}/jobs/delete",
			"Remove queued jobs, by id or all that match and have failed or are held", service.Delete),
		routeOf("/queues/{queue}/jobs/move",
			"Move queued jobs to a paused queue: by id, with dead letters and schedules, or all that match",
			service.Move),
		routeOf("/queues/{queue}/jobs/edit", "Replace payloads of a queued job; its state stays", service.EditJob),
		routeOf("/queues/{queue}/claimed/cancel", "Cancel claimed jobs", service.Cancel),
		routeOf("/queues/{queue}/morgue/revive", "Revive dead letters, by id or all that match", service.Revive),
		routeOf("/queues/{queue}/morgue/purge",
			"Remove dead letters permanently, by id or all that match", service.Purge),
		routeOf("/queues/{queue}/morgue/move",
			"Move all dead letters that match to the morgue of a paused queue", service.MoveMorgue),
		routeOf("/queues/{queue}/morgue/edit", "Replace payloads of a dead letter", service.Edit),
		routeOf("/queues/{queue}/quarantine/discard", "Remove records that can't be read", service.Discard),
		routeOf("/queues/{queue}/tracked/add", "Track an id", service.Track),
		routeOf("/queues/{queue}/tracked/remove", "End the tracking of an id", service.Untrack),
		routeOf("/queues/{queue}/schedules/pause", "Pause schedules", service.PauseSchedules),
		routeOf("/queues/{queue}/schedules/resume", "End the pause of schedules", service.ResumeSchedules),
		routeOf("/queues/{queue}/schedules/run",
			"Push the payloads of schedules once, now; a repeated request pushes again", service.RunSchedules),
		routeOf("/queues/{queue}/schedules/edit",
			"Change the times, the payload or the options of schedules", service.EditSchedules),
		routeOf("/queues/{queue}/schedules/backfill",
			"Push the payload of a schedule for each past tick of a range", service.BackfillSchedule),
		routeOf("/queues/{queue}/schedules/remove",
			"Remove schedules; what they have pushed stays", service.RemoveSchedules),
		routeOf("/nodes/drain", "Drain a server: it gives up its shards and takes no others", service.Drain),
		routeOf("/nodes/resume", "End the drain of a server", service.ResumeNode),
		routeOf("/queues/{queue}/jobs", "Push payloads to a queue that exists; a repeat merges", service.Push),
	}
}
