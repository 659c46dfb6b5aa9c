package dashboard

import "strconv"

// head is a column's head in a table, and the address that sorts by it.
type head struct {
	Text, By, Title, Href string
	// N is true for a column of numbers. Up is true if the smallest value comes first.
	N, Up bool
}

// heads are the columns of numbers of the table of queues.
func heads() []head {
	return []head{
		{Text: "Lag", By: "lag", Title: "how long the longest-waiting job has waited"},
		{Text: "Waiting", By: "waiting", Title: "queued jobs, due or not"},
		{Text: "Running", By: "running", Title: "jobs that running servers have claimed"},
		{Text: "Retrying", By: "retries", Title: "queued jobs that have failed"},
		{Text: "Dead", By: "dead", Title: "ids in the morgue"},
		{Text: "Done/s", By: "done", Title: "over the last five minutes"},
		{Text: "Failed", By: "failed", Title: "of the jobs that ended in the last five minutes"},
	}
}

// shardTable is a table of shards.
type shardTable struct {
	Queue, Sort string
	Rows        []shardRow
	Heads       []head
}

// shardTableOf makes a table of shards, which may be sorted.
func shardTableOf(queue, sort string, rows []shardRow, sorted bool) *shardTable {
	t := &shardTable{Queue: queue, Sort: sort, Rows: rows}
	if sort == "" {
		t.Sort = "index"
	}

	for _, h := range []head{
		{Text: "Shard", By: "index", N: true, Up: true},
		{Text: "Lag", By: "lag", N: true},
		{Text: "Waiting", By: "waiting", N: true},
		{Text: "Running", By: "running", N: true},
		{Text: "Dead", By: "dead", N: true},
		{Text: "Owner", By: "owner", Up: true},
		{Text: "Lease ends", By: "until", N: true, Up: true},
	} {
		if sorted {
			by := h.By
			if by == "index" {
				by = ""
			}
			h.Href = href("shards", "q", queue, "sort", by)
		}
		t.Heads = append(t.Heads, h)
	}

	return t
}

// bound writes a bound; 0 means no bound.
func bound(n int) string {
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(n)
}

// linkedServer is the name of a server, with a link to its page if that is known.
type linkedServer struct{ Href, Name string }

// linkedID is an id, with a link to its page if it may be shown.
type linkedID struct {
	Linked    bool
	Queue, ID string
}

// button is an action on one id.
type button struct {
	Queue, ID, Op, Text string
	// Class is "p" for the likely next step and "x" for one that loses data.
	Class string
	// May is true if the user may use the button.
	May bool
}

// payloadList are the payloads of a place, which may be edited unless it is the claimed job.
type payloadList struct {
	Queue, ID string
	*payloadPage
	Edit bool
}

// claimTable is a table of claimed jobs.
type claimTable struct {
	*busyBody
	Rows  []busyRow
	Label string
	// Orphaned is true if the claims belong to servers that are gone.
	Orphaned bool
	Scale    []mark
}

// linkedFigure is a number, and a link to the list of the entries that it counts.
type linkedFigure struct {
	N    int64
	Href string
}
