package conformance

// Rules that the cases of several subjects quote.
const (
	rulePayloads  = "RULES 2: payloads are united; for equal bytes the smaller score stays, whichever side it is on"
	ruleEmpty     = "Turn: one that has nothing to settle or begin, finds nothing to claim and hands over no orphan writes nothing, does not renew and does not use up its number"
	ruleSkip      = "Turn: a settlement whose (ID, Receipt) is not claimed is skipped, not counted, and reported; so is the second one of an id in a turn"
	ruleReturn    = "RULES 2: a failed, untouched or recovered job put back: PerformAt, RetryCount and error are the returning job's; Recoveries: the larger; FirstPush: the smaller"
	ruleMorgue    = "RULES 2: a payload that enters the morgue where its id is already: united the same way, newest error and time"
	ruleBudget    = "RULES 1: a claim takes lowest scores first, within a byte budget over all payloads, at least one; it takes no job after one it cut"
	ruleBegin     = "Turn: each claimed job that Begin names is marked as begun until it is settled"
	ruleHead      = "TurnReply: Head is when the shard's next job could be claimed, if nothing were pushed or settled"
	ruleStepBack  = "Acquire: a lease whose expiry is further away than its own TTL, because the clock stepped back, expires that TTL from now"
	ruleCommitted = "Push, Settle: what has committed before a later call of the same id is never overtaken by it (payloads are handed over oldest first, RULES 1)"
)
