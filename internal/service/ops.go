package service

// The views of the service. Each is about the queue of the call, or about the queue that its input
// names. The operation Nothing only checks the rights and does not read the store.
var (
	Stats      = look((*call).stats)
	Queues     = look((*call).queues)
	QueueStats = look((*call).queueStats)
	History    = look((*call).history)
	Jobs       = look((*call).jobs)
	Claimed    = look((*call).claimed)
	Morgue     = look((*call).morgue)
	Past       = look((*call).past)
	Groups     = look((*call).groups)
	Errors     = narrowed(look((*call).errors))
	Quarantine = look((*call).quarantine)
	Tracked    = look((*call).tracked)
	Payloads   = look((*call).payloadsOf)
	Rate       = look((*call).rate)

	Schedules     = look((*call).schedules)
	ScheduleNames = look((*call).scheduleNames)
	Schedule      = look((*call).oneSchedule)

	Find    = look((*call).find)
	Why     = look((*call).why)
	Nodes   = look((*call).nodes)
	Audit   = look((*call).audit)
	Checks  = look((*call).checks)
	Nothing = look((*call).nothing)
)

// The actions of the service.
var (
	Pause       = act("pause", (*call).pause)
	Resume      = act("resume", (*call).resume)
	SetMerge    = act("set-merge", (*call).setMerge)
	Configure   = act("configure", (*call).configure)
	Forget      = act("forget", (*call).forget)
	Recount     = slow(act("recount", (*call).recount))
	RunNow      = act("run-now", (*call).runNow)
	Release     = act("release", (*call).release)
	BuryFirst   = act("bury", (*call).buryFirst)
	DeleteFirst = act("delete", (*call).deleteFirst)
	Bury        = act("bury", (*call).bury)
	Delete      = act("delete", (*call).remove)
	Cancel      = act("cancel", (*call).cancel)
	Move        = act("move", (*call).move)
	MoveMorgue  = act("move", (*call).moveMorgue)
	Revive      = act("revive", (*call).revive)
	Purge       = act("purge", (*call).purge)
	Edit        = act("edit", (*call).edit)
	EditJob     = act("edit", (*call).editJob)
	Discard     = act("discard", (*call).discard)
	Track       = act("track", (*call).track)
	Untrack     = act("track", (*call).untrack)

	Push = routine(act("push", (*call).push))

	StopRate   = act("stop-rate", (*call).stopRate)
	ResumeRate = act("stop-rate", (*call).resumeRate)

	PauseSchedules   = slow(act("pause-schedule", (*call).pauseSchedules))
	ResumeSchedules  = slow(act("pause-schedule", (*call).resumeSchedules))
	RunSchedules     = slow(act("run-schedule", (*call).runSchedules))
	BackfillSchedule = act("run-schedule", (*call).backfillSchedule)
	EditSchedules    = slow(act("edit-schedule", (*call).editSchedules))
	RemoveSchedules  = slow(act("remove-schedule", (*call).removeSchedules))

	Drain      = act("drain", (*call).drain)
	ResumeNode = act("drain", (*call).resumeNode)
)
