package env

// Rules that the cases of several subjects quote.
const (
	RulePayloads = "RULES 2: payloads are united; for equal bytes the smaller score stays, whichever side it is on"
	RuleMorgue   = "RULES 2: a payload that enters the morgue when its id has a dead letter: " +
		"united the same way, newest error and time"
	RuleCommitted = "Push, Settle: what has committed before a later call of the same id is never overtaken by it " +
		"(payloads are handed over oldest first, RULES 1)"
	RuleForget = "Forget removes a queue with no queued, claimed or dead entry and no leased shard: " +
		"its record, counters and history"
	RuleFindBound = "FindRequest: at most Payloads of each place, and at most core.MaxTurnPayloads payloads " +
		"and core.MaxStepBytes of all together; the very first payload is always returned"
	RuleGroups = "Groups counts the dead letters by group. Each dead letter has one group, " +
		"that of its newest burial; so the counts match the lists and steps by group, and add up to Counts.Dead"
	RuleMerge = "RULES 2: payloads merge by the queue's merge rule, wherever they meet; " +
		"what stays does not depend on the order of merges"
	RuleReceipts = "Turn: of settlements of one id with different receipts, " +
		"the claimed one is applied, whatever its place"
	RulePermits = "Permit gives the owner as many permits of the queue as it asks for and the limit allows; " +
		"the permits of all owners together stay within Limit"
	RuleLimiter = "Limiter: a limiter counts the grants of all callers, and any period of the rate's length has " +
		"at most Count+Burst+1 slots (RULES 12)"
	RuleAwait  = "Turn: an awaiting job is requeued as core.PutBack.Merge describes"
	RuleTags   = "RULES 2: wherever two jobs or dead letters of an id merge, their tags unite"
	RuleUrgent = "RULES 2: an urgent entry pushes at now - d and merges by Earliest, whatever the rule of the push is"
)
