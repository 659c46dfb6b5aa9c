package broken

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/skeinq/skein/conformance/internal/env"
)

// brokenStore is a store that breaks one promise.
type brokenStore struct {
	name string
	// caught is the case that must fail: the case of the rule that the store breaks.
	caught  string
	factory env.Factory
}

func brokenStores() []brokenStore {
	return []brokenStore{
		{"loses a payload on merge", "push/unites payloads", wrapped(losesPayload)},
		{"keeps the larger score", "push/keeps the smaller score", wrapped(keepsLargerScore)},
		{
			"counts duplicates as merged",
			"push/reports whether its entries are new, merged or duplicates",
			wrapped(mergesDuplicates),
		},
		{
			"forgets the reply to a part of a push",
			"push/reports whether many entries are new, merged or duplicates",
			wrapped(forgetsParts),
		},
		{"loses Meta", "push/keeps the Meta of the copy that stays", wrapped(losesMeta)},
		{"rounds the time", "push/makes a fresh job at the store's present time", roundsTime},
		{
			"stores what comes before a bad entry",
			"input/refuses a whole push for one bad entry",
			wrapped(storesBeforeBad),
		},
		{"accepts any bytes as a name", "input/refuses names that are not text", wrapped(takesAnyName)},
		{
			"fails for an owner that is not text",
			"input/finds no owner by a name that is not text",
			wrapped(failsForOddOwners),
		},
		{
			"returns another error for a queue's name that is not text",
			"input/finds no queue by a name that is not text",
			wrapped(failsForOddQueues),
		},
		{
			"fails for a receipt that is not text",
			"input/settles and begins nothing by an id that is not text",
			wrapped(failsForOddReceipts),
		},
		{
			"fails for a cursor that is not text",
			"input/refuses or accepts a cursor that no page returned, but does not fail",
			wrapped(failsForOddCursors),
		},
		{
			"forgets the server of a failure",
			"settle/puts a failed job back with its delay, count and failure",
			wrapped(forgetsNodes),
		},
		{
			"gives a failure its own time",
			"settle/puts a failed job back with its delay, count and failure",
			wrapped(timesFailures),
		},
		{"ends an error at NUL", "settle/keeps failures as Failures.Stored returns them", wrapped(endsErrorsAtNUL)},
		{"ignores the generation", "input/refuses another shard count or generation", wrapped(ignoresGeneration)},
		{
			"ignores the generation of an acquire",
			"acquire/refuses another shard count or generation",
			wrapped(ignoresGeneration),
		},
		{"gives a held shard away", "acquire/refuses a held shard", wrapped(givesAway)},
		{
			"gives tokens that go back with the clock",
			"acquire/returns larger tokens even if the clock stepped back",
			tokensGoBack,
		},
		{
			"recovers twice on a late acquire",
			"acquire/resets nothing when it is repeated after turns",
			wrapped(resetsOnRepeat),
		},
		{
			"strands the jobs of a dead owner",
			"orphan/pass to the next lease with their receipts",
			wrapped(strandsOrphans),
		},
		{"forgets the token", "lease/must match in all fields", wrapped(forgetsToken)},
		{"refuses a late turn", "turn/works after the expiry", wrapped(refusesLate)},
		{"renews in an empty turn", "turn/does not renew when there is nothing to do", wrapped(renewsWhenEmpty)},
		{"acquires without the head", "head/is returned with a new lease", wrapped(acquiresBlindly)},
		{"reads the head only when a lease begins", "head/is the earliest time, due or not", wrapped(looksOnce)},
		{"acquires a paused shard like any other", "head/is absent while the queue is paused", wrapped(acquiresPaused)},
		{"counts orphans as queued jobs", "head/is returned with a new lease", wrapped(countsOrphans)},
		{"renews without the head", "head/is the earliest time, due or not", wrapped(renewsBlindly)},
		{"renews a paused shard like any other", "head/is absent while the queue is paused", wrapped(renewsPaused)},
		{"applies a repeated turn twice", "repeat/counts nothing twice", wrapped(countsRepeats)},
		{"claims more when a turn is repeated", "repeat/claims nothing more", wrapped(claimsOnRepeat)},
		{
			"strands claims on a lost reply",
			"repeat/returns the same claims in their first order",
			wrapped(strandsClaims),
		},
		{"hides a repeat", "repeat/reports that it is a repeat", wrapped(hidesRepeats)},
		{
			"lets a late first call claim",
			"repeat/leaves nothing for a first call that arrives late",
			wrapped(ignoresResent),
		},
		{"forgets which jobs have begun", "begin/is passed to the next owner", wrapped(forgetsBegun)},
		{"begins jobs that are not claimed", "begin/reports jobs that are not claimed", wrapped(reportsAllBegun)},
		{"ends no payload of a claimed job", "part/ends a payload and begins the next", wrapped(ignoresParts)},
		{
			"ends a payload without beginning the next",
			"part/ends a payload and begins the next",
			wrapped(endsWithoutBeginning),
		},
		{
			"keeps the failures of a payload that has ended",
			"part/gives the failures of the first payload to no other",
			wrapped(keepsRecoveries),
		},
		{"reports no part as skipped", "part/is skipped without its claim", wrapped(reportsAllParts)},
		{"ends another payload when a part comes again", "part/is applied once", wrapped(endsAnother)},
		{"refuses a part that comes again", "part/is applied once", wrapped(refusesPartsAgain)},
		{"ends payloads before it settles", "part/is applied after the settlements", wrapped(endsPartsFirst)},
		{
			"uses no number for a turn with parts alone",
			"part/uses up the turn's number and renews",
			wrapped(countsNoParts),
		},
		{
			"isolates jobs at their first recovery",
			"recovered/is claimed beside others after one recovery",
			wrapped(isolatesAtOnce),
		},
		{"forgets a queue with jobs", "forget/refuses a queue that is not empty", wrapped(forgetsJobs)},
		{"forgets a leased queue", "forget/refuses a queue with a leased shard", wrapped(forgetsLeased)},
		{"shows every claim as running", "begin/shows whether its lease has ended", wrapped(hidesLeaseOver)},
		{"forgets whether a cancel drops", "cancel/is shown with the claim", wrapped(forgetsWhatCancelsDo)},
		{"returns the end of a lease that is over", "begin/shows whether its lease has ended", wrapped(keepsLeaseEnds)},
		{"keeps few of the jobs of a server's status", "registry/limits the status of a server", wrapped(namesFewJobs)},
		{"shows an owner of a released shard", "stats/show a dead owner's jobs as orphans", wrapped(keepsOwner)},
		{"releases without a wake-up", "wakeups/reports a release", wrapped(releasesSilently)},
		{
			"hides servers that are gone",
			"registry/lists a server that stopped announcing as gone for an hour",
			wrapped(hidesGoneNodes),
		},
		{
			"lists servers that are gone for ever",
			"registry/lists a server that stopped announcing as gone for an hour",
			wrapped(remembersNodes),
		},
		{
			"remembers servers that it should remove",
			"registry/forgets servers that have been gone for an hour",
			wrapped(remembersNodes),
		},
		{
			"lets a clock lengthen announcements",
			"registry/shortens an announcement that a clock has lengthened",
			wrapped(stretchesNodes),
		},
		{
			"returns the status of servers to other servers",
			"registry/returns only from Nodes what servers are doing",
			wrapped(tellsNodesTheStatus),
		},
		{
			"forgets the limits of a server's queues",
			"registry/returns only from Nodes what servers are doing",
			wrapped(forgetsBoundsOfNodes),
		},
		{
			"forgets the clock of a server",
			"registry/returns only from Nodes what servers are doing",
			wrapped(forgetsClocks),
		},
		{
			"forgets the last chance of a server",
			"registry/returns only from Nodes what servers are doing",
			wrapped(forgetsLastChances),
		},
		{"ends a drain by a renewal", "registry/keeps a drain while a server renews", wrapped(endsDrainsByRenewal)},
		{"never ends a drain by itself", "registry/ends a drain with the announcement", wrapped(remembersDrains)},
		{
			"ends the drain of a server that stops",
			"registry/drains a server that stops, whatever an operator asks for",
			wrapped(overrulesNodes),
		},
		{"drains an unknown server", "registry/refuses to drain an unknown server", wrapped(drainsAnybody)},
		{"forgets why an operator acted", "audit/lists every field of an action", wrapped(forgetsReasons)},
		{
			"stores the end of an action beside its beginning",
			"audit/replaces an action when it has ended",
			wrapped(auditsEndsAnew),
		},
		{"dates an action by its end", "audit/replaces an action when it has ended", wrapped(datesActionsByTheirEnd)},
		{"ignores how an action ended", "audit/replaces an action when it has ended", wrapped(auditsOnlyTheFirst)},
		{"keeps actions for ever", "audit/keeps a thousand actions", wrapped(keepsActionsForEver)},
		{"lists the oldest action first", "audit/orders actions by when they began", wrapped(listsOldActionsFirst)},
		{"lists an action on two pages", "audit/lists actions by pages", wrapped(listsTheLastActionTwice)},
		{"accepts an action without a verb", "audit/refuses a bad action", wrapped(takesActionsWithoutAVerb)},
		{
			"changes the list of servers without a wake-up",
			"wakeups/reports each change of the list of servers",
			wrapped(changesNodesSilently),
		},
		{"wakes servers at each renewal", "wakeups/reports no server that only renews", wrapped(wakesAtRenewals)},
		{
			"reports changes of servers to all callers",
			"wakeups/reports servers only to callers that asked for them",
			wrapped(wakesEverybodyForNodes),
		},
		{
			"lets a stale settlement touch a later claim",
			"skip/the receipt of an earlier claim",
			wrapped(ignoresReceipts),
		},
		{"counts a skipped settlement", "skip/skipped settlements count nothing", wrapped(countsSkipped)},
		{
			"lets an awaiting job sleep past a push",
			"settle/an awaiting job runs with what was pushed since its claim",
			wrapped(sleepsPastPushes),
		},
		{"ends a wait by the rest of its claim", "vectors/awaits", wrapped(endsWaitsByAnyJob)},
		{"claims in order of id", "claim/takes the oldest first", wrapped(claimsByID)},
		{"claims a claimed id", "claim/skips claimed ids", wrapped(claimsClaimed)},
		{"ignores the bytes", "claim/splits a job at the limit of bytes", wrapped(ignoresBytes)},
		{
			"keeps the retries of a split job for the rest of its payloads",
			"claim/leaves the state of a split job with the rest of its payloads",
			wrapped(countsTheRest),
		},
		{"overtakes a recovered job", "recovered/is never overtaken", wrapped(forgetsRecoveries)},
		{"claims when paused", "pause/stops claims", wrapped(ignoresPause)},
		{"claims when paused after it has worked", "pause/stops claims", wrapped(pausesLate)},
		{
			"never sees an old job that is put back",
			"claim/takes an old job that was put back",
			wrapped(losesOldPutBacks),
		},
		{
			"reports a cancel only once",
			"cancel/is reported in each reply until its job is settled",
			wrapped(cancelsOnce),
		},
		{"fails for ids that are not text", "step/ignores ids that no job can have", wrapped(stumblesOverIDs)},
		{
			"takes named dead letters that have changed",
			"morgue/steps on named dead letters skip those that have changed since",
			wrapped(ignoresChanges),
		},
		{
			"loses the Meta of imported payloads",
			"import/stores every field of a dead letter",
			wrapped(importsWithoutMeta),
		},
		{
			"dates imported dead letters by the present",
			"import/stores every field of a dead letter",
			wrapped(importsAsOfNow),
		},
		{"changes its caller's dead letters", "import/stores every field of a dead letter", wrapped(importsInPlace)},
		{"imports over later changes", "import/keeps the fields that changed later", wrapped(importsNewest)},
		{"counts a repeated import", "import/changes and counts nothing when it is repeated", wrapped(importsTwice)},
		{
			"duplicates a payload that is imported again",
			"import/changes and counts nothing when it is repeated",
			wrapped(doublesImports),
		},
		{
			"imports the dead letters before an invalid one",
			"import/refuses a whole request for one invalid dead letter",
			wrapped(importsInPart),
		},
		{"loses the Meta of imported jobs", "import jobs/stores every field of a job", wrapped(importsJobsWithoutMeta)},
		{"forgets the retries of imported jobs", "import jobs/stores every field of a job", wrapped(importsJobsFresh)},
		{
			"forgets when imported jobs were first pushed",
			"import jobs/stores every field of a job",
			wrapped(forgetsTheirFirstPush),
		},
		{
			"imports jobs over those with as many failures",
			"import jobs/keeps the state of the job with more failures",
			wrapped(importsAsPutBack),
		},
		{"imports jobs by their failures only", "import jobs/keeps a held job held", wrapped(importsOverHeld)},
		{
			"keeps the time of a fresh job",
			"import jobs/keeps the state of the job with more failures",
			wrapped(importsAsLater),
		},
		{
			"imports into a shard that runs",
			"import jobs/imports into a shard that must be paused only while it is",
			wrapped(importsWhileRunning),
		},
		{
			"imports payloads over smaller scores",
			"import jobs/merges payloads with those of a queued job",
			wrapped(replacesPayloads),
		},
		{
			"deletes jobs whole when payloads are named",
			"delete payloads/removes the named payloads and no other",
			wrapped(deletesWholeJobs),
		},
		{"deletes payloads with other scores", "delete payloads/leaves what was pushed since", wrapped(deletesByData)},
		{
			"keeps the retries of a deleted first payload",
			"delete payloads/continues with the others once the first payload is gone",
			wrapped(keepsRetries),
		},
		{"buries jobs whole when payloads are named", "delete payloads/refuses a bad step", wrapped(buriesWholeJobs)},
		{"keeps no dead letters in a purge", "morgue/steps keep as many as they are told", wrapped(keepsNone)},
		{"revives twice", "morgue/revive duplicates nothing when it is repeated", wrapped(revivesTwice)},
		{"adds up the records of an owner", "history/counts nothing twice", wrapped(addsRecords)},
		{
			"replaces a record by an older one",
			"history/does not let a late record replace a newer one",
			wrapped(takesLateRecords),
		},
		{"has one record for all owners", "history/sums up what owners have counted", wrapped(mixesOwners)},
		{"lists minutes older than a day", "history/keeps 24 hours", wrapped(keepsHistory)},
		{
			"removes records that are not listed at once",
			"history/keeps records an hour longer in case the clock is set back",
			wrapped(removesHistoryAtOnce),
		},
		{"stores records of any minute", "history/ignores minutes far from the present", wrapped(keepsHistory)},
		{"keeps the history of a forgotten queue", "history/is removed with its queue", wrapped(keepsHistory)},
		{"begins steps at the start of the list", "history/sums up the minutes of a step", wrapped(startsStepsAtFrom)},
		{
			"refuses records of a queue that is not there",
			"history/ignores a queue that was not declared",
			wrapped(refusesUndeclared),
		},
		{
			"loses jobs beside one that waits",
			"list/jobs are listed beside one that waits for a claim",
			wrapped(skipsBesideWaiting),
		},
		{"returns an entry on two pages", "list/jobs are listed in every order, both ways", wrapped(pagesOverlap)},
		{"keeps a handle's data to itself", "store/shares its data between handles", keepsToItself},
		{"lets a released lease turn", "usual/a released lease can neither settle nor claim", wrapped(keepsReleased)},
		{"does not report a job settled twice", "usual/a job is settled once", wrapped(dropsSecond)},
		{"loses the Meta of large jobs", "large/is put back with all its Meta", wrapped(losesMetaOfLarge)},
		{
			"edits dead letters instead of queued jobs",
			"edit queued/leaves claimed jobs and dead letters alone",
			wrapped(editsDeadInstead),
		},
		{"edits a queued job by a push", "edit queued/replaces a payload's bytes", wrapped(editsByPush)},
		{
			"makes an edited job due",
			"edit queued/keeps the state, whichever payload is first",
			wrapped(editsMakeDue),
		},
		{
			"merges no edited payload",
			"edit queued/merges with equal bytes by the queue's rule",
			wrapped(editsNothingKnown),
		},
		{
			"keeps too many payloads after an edit",
			"edit queued/drops what the queue's rule does not keep",
			wrapped(editsBeyondBound),
		},
		{
			"counts edits of what is not there",
			"edit queued/changes nothing where the payload is not there, and nothing more when it is repeated",
			wrapped(countsEdits),
		},
		{"ignores Before", "step/skips jobs that were done and pushed again", wrapped(ignoresBefore)},
		{"takes jobs pushed at Before", "step/skips jobs pushed at its Before or later", wrapped(takesBefore)},
		{
			"compares Before with the last push",
			"step/takes a job pushed before, with payloads merged later",
			wrapped(countsLastPush),
		},
		{"treats fresh jobs as failed", "step/can be limited to jobs with a failure", wrapped(takesFresh)},
		{"grants permits beyond the limit", "permits/are held within the limit", wrapped(exceedsPermits)},
		{"never ends permits", "permits/end with their TTL", wrapped(keepsPermits)},
		{"counts the permits of all queues as one", "permits/belong to one queue", wrapped(mixesPermits)},
		{"accepts a late call for permits", "permits/refuses a call that comes late", wrapped(takesLatePermits)},
		{"withdraws permits under a smaller limit", "permits/are kept under a smaller limit", wrapped(stripsPermits)},
		{
			"hides owners that only want permits",
			"permits/lists all owners that hold or want permits",
			wrapped(forgetsWanting),
		},
		{
			"frees permits without a wake-up",
			"permit wakeups/reports permits that become free",
			wrapped(freesPermitsSilently),
		},
		{"sends no wake-up", "wakeups/reports a push", wrapped(wakesNobody)},
		{
			"settles the first payload for any",
			"settler/settles one payload of a claimed job",
			wrapped(settlesTheFirstPayload),
		},
		{
			"keeps the count when the first payload is settled",
			"settler/restarts the count of retries with the first payload",
			wrapped(keepsTheCount),
		},
		{
			"keeps the receipt when a payload is settled",
			"settler/applies the settlement of the claimed receipt",
			wrapped(keepsReceipts),
		},
		{
			"looks at the first settlement of an id only",
			"skip/another receipt beside the right one",
			wrapped(appliesTheFirst),
		},
		{
			"ends a job with its last payload",
			"settler/refuses the last payload of a job",
			wrapped(settlesTheLastPayload),
		},
		{"accepts a settled payload again", "settler/settles a payload once", wrapped(settlesPayloadsAgain)},
		{
			"accepts a payload of a job that was handed over",
			"settler/refuses a payload of a job that was handed over",
			wrapped(settlesPayloadsAgain),
		},
		{
			"refuses a payload as soon as there is a later lease",
			"settler/settles a payload of a job that is not handed over yet",
			wrapped(settlesPayloadsUnderTheLease),
		},
		{
			"settles several payloads in a transaction",
			"transaction/settles one payload of a job",
			wrapped(func(s full) full { return settlesMore{s} }),
		},
		{
			"settles a payload before the commit",
			"transaction/removes a payload when it commits",
			wrapped(func(s full) full { return settlesPayloadsAtOnce{s} }),
		},
		{"settles one by one", "settler/settles all or none", wrapped(settlesOneByOne)},
		{
			"claims before it merges pushes of transactions",
			"transaction/is not overtaken by a later push",
			wrapped(claimsBeforeItMerges),
		},
		{
			"stops all ids for a long inbox",
			"transaction/does not stop other ids with a long inbox",
			wrapped(stopsForALongInbox),
		},
		{
			"skips pushes of transactions",
			"transaction/runs an id that is pushed without end",
			wrapped(starvesWhatIsPushed),
		},
		{
			"loses a transaction's put-back after a Find",
			"racing/a working day of transactions",
			wrapped(losesWhatIsFound),
		},
		{"fails a turn beside pushes", "transaction/runs an id that is pushed without end", wrapped(failsThirdTurn)},
		{"puts back a job that a push has moved", "transaction/puts a job back once", wrapped(putsBackTwice)},
		{"fails for one shard that can't be reached", "unreached/one shard can't be reached", wrapped(failsForOne)},
		{
			"hides the head behind a shard that can't be reached",
			"unreached/one shard can't be reached",
			wrapped(hidesNeighbours),
		},
		{
			"counts jobs that are not due as ahead",
			"standing/counts nothing for a job that is claimed, absent or not due",
			wrapped(countsAllAhead),
		},
		{"hides a job that runs alone", "standing/names a claimed job that runs alone", wrapped(hidesAlone)},
		{"shows a lease that was released", "standing/shows the lease", wrapped(standsReleased)},
		{"stops for a damaged record", "damaged/a queued job stops no turn", wrapped(stopsForDamage)},
		{"drops records that it can't read", "damaged/a queued job makes room for a push", wrapped(dropsDamage)},
		{"hides quarantined records", "damaged/a claimed job stops no acquire", wrapped(hidesDamage)},
		{"treats a damaged claim as settled", "damaged/a claimed job stops no settlement", wrapped(settlesDamaged)},
		{"discards more than was asked for", "damaged/is discarded by its key", wrapped(discardsAll)},
		{"hides shards with quarantined records", "damaged/is reported for its shard", wrapped(hidesDamagedShards)},
		{"lists all shards as quarantined", "damaged/is reported for its shard", wrapped(suspectsAllShards)},
		{
			"treats unreached shards as sound",
			"unreached/quarantines name the shards that can't be reached",
			wrapped(hidesUnreachedQuarantines),
		},
		{"hides damage from Find", "damaged/is left out by lists and Find", wrapped(findsNoDamage)},
		{"forgets quarantined records", "damaged/keeps its queue from being forgotten", wrapped(forgetsDamage)},
		{"returns a negative MaxTurns", "limiter/is at least 0 and does not change", wrapped(wantsFewerThanNone)},
		{
			"returns a larger MaxTurns each time",
			"limiter/is at least 0 and does not change",
			wrapped(wantsMoreEachTime),
		},
		{"hands over all orphans at once", "bounds/hands over orphans in parts", wrapped(handsOverAll)},
		{"hands over all orphans at once, in bytes", "bytes/hands over orphans in parts", wrapped(handsOverAll)},
		{"settles everything in one turn, in bytes", "bytes/puts back in parts", wrapped(settlesAll)},
		{
			"loses orphans that an acquire does not hand over",
			"bounds/hands over orphans in parts",
			wrapped(losesOrphans),
		},
		{"hands over a job twice", "bounds/hands over orphans in parts", wrapped(handsOverTwice)},
		{"hides orphans that are still to be handed over", "bounds/hands over orphans in parts", wrapped(hidesTheRest)},
		{
			"hands over nothing when a turn is repeated",
			"bounds/hands over the same orphans when it is repeated",
			wrapped(forgetsOrphansOnRepeat),
		},
		{
			"hands over nothing when a turn is resent",
			"bounds/hands over the same orphans when it is repeated",
			wrapped(forgetsResentOrphans),
		},
		{
			"uses no number for a turn that only hands over",
			"bounds/hands over the same orphans when it is repeated",
			wrapped(countsNoHandOver),
		},
		{
			"claims without counting the orphans it hands over",
			"bounds/claims less when it hands over orphans",
			wrapped(claimsBesideOrphans),
		},
		{
			"claims without counting the orphans it hands over, in bytes",
			"bytes/claims less when it hands over orphans",
			wrapped(claimsBesideOrphans),
		},
		{"settles everything in one turn", "bounds/puts back in parts", wrapped(settlesAll)},
		{"loses deferred settlements", "bounds/buries in parts", wrapped(losesDeferred)},
		{
			"defers all settlements after the first deferred one",
			"bounds/skips settled jobs instead of deferring them",
			wrapped(defersSkipped),
		},
		{
			"stores only as much of a push as a step moves",
			"bytes/accepts a push for a job larger than a step",
			wrapped(pushesAPart),
		},
		{
			"reports ids as reached that it did not reach",
			"bounds/bury, delete, revive and purge reach ids in order",
			wrapped(reachesTooFar),
		},
		{"buries everything in one step", "bounds/bury and delete take a large job in parts", wrapped(buriesAll)},
		{
			"reports that nothing is left of an entry in parts",
			"bounds/reports that more is left of an entry that goes in parts",
			wrapped(hidesParts),
		},
		{
			"counts a dead letter with each of its parts",
			"bounds/reports that more is left of an entry that goes in parts",
			wrapped(countsParts),
		},
		{"miscounts retries beside pushes", "racing/counts match the lists", wrapped(miscountsBesidePushes)},
	}
}

func allBroken() []brokenStore {
	return slices.Concat(
		brokenStores(), brokenLists(), brokenPages(), brokenGroups(), brokenFinds(), brokenPendings(), brokenRecounts(),
		brokenMerges(), brokenHolds(), brokenUrgency(), brokenTags(), brokenFailures(), brokenSlots(), brokenPasts(),
		brokenMarks(), brokenImportedPasts(), brokenOnce(), brokenTracked(), brokenDays(), brokenIdentity(), brokenCalendars(),
		brokenSettings(), brokenLimiters(),
	)
}

// TestBrokenStoresFail tests the suite: each broken store fails the case of the rule that it
// breaks, and the failure states that rule. Time is virtual, so a case that waits for a broken
// store takes no real time.
func TestBrokenStoresFail(t *testing.T) {
	for _, b := range allBroken() {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := caseNamed(t, b.caught)
				reports := strings.Join(record(t, c, b.factory), "\n")
				if reports == "" {
					t.Fatalf("a store that %s passes %q", b.name, b.caught)
				}
				if !strings.Contains(reports, c.Rule) {
					t.Errorf("the failure does not state the rule %q:\n%s", c.Rule, reports)
				}
			})
		})
	}
}

// The cases that catch broken stores pass on the store from which these are made, also when the
// recorder runs them.
func TestHealthyStorePasses(t *testing.T) {
	ran := make(map[string]bool)
	for _, b := range allBroken() {
		if ran[b.caught] {
			continue
		}
		ran[b.caught] = true
		reports := record(t, caseNamed(t, b.caught), wrapped(func(s full) full { return s }))
		if len(reports) > 0 {
			t.Errorf("a healthy store fails %q:\n%s", b.caught, strings.Join(reports, "\n"))
		}
	}
}
