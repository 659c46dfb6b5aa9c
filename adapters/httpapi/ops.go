package httpapi

// The looks of the service. Nothing looks at nothing of the store: it asks the rights alone.
var (
	opStats      = look((*call).stats)
	opQueues     = look((*call).queues)
	opQueueStats = look((*call).queueStats)
	opHistory    = look((*call).history)
	opJobs       = look((*call).jobs)
	opClaimed    = look((*call).claimed)
	opMorgue     = look((*call).morgue)
	opGroups     = look((*call).groups)
	opQuarantine = look((*call).quarantine)
	opPayloads   = look((*call).payloadsOf)
	opFind       = look((*call).find)
	opWhy        = look((*call).why)
	opNodes      = look((*call).nodes)
	opAudit      = look((*call).audit)
	opChecks     = look((*call).checks)
	opNothing    = look((*call).nothing)
)

// The actions of the service.
var (
	opPause      = act("pause", (*call).pause)
	opResume     = act("resume", (*call).resume)
	opForget     = act("forget", (*call).forget)
	opRecount    = slow(act("recount", (*call).recount))
	opRunNow     = act("run-now", (*call).runNow)
	opBury       = act("bury", (*call).bury)
	opDelete     = act("delete", (*call).remove)
	opCancel     = act("cancel", (*call).cancel)
	opRevive     = act("revive", (*call).revive)
	opPurge      = act("purge", (*call).purge)
	opEdit       = act("edit", (*call).edit)
	opDiscard    = act("discard", (*call).discard)
	opDrain      = act("drain", (*call).drain)
	opResumeNode = act("drain", (*call).resumeNode)
)
