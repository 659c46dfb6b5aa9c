package conformance

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// brokenStore is a store that breaks one promise.
type brokenStore struct {
	name string
	// caught is the case that must fail: that of the rule which the store breaks.
	caught  string
	factory Factory
}

func brokenStores() []brokenStore {
	return []brokenStore{
		{"loses a payload on merge", "push/unites payloads", wrapped(losesPayload)},
		{"keeps the larger score", "push/keeps the smaller score", wrapped(keepsLargerScore)},
		{"counts duplicates as merged", "push/says what its entries met", wrapped(mergesDuplicates)},
		{"forgets what a part of a push met", "push/says what many entries met", wrapped(forgetsParts)},
		{"loses Meta", "push/keeps the Meta of the copy that stays", wrapped(losesMeta)},
		{"rounds the time", "push/makes a fresh job at the store's now", roundsTime},
		{"stores what comes before a bad entry", "input/refuses a push whole for one bad entry", wrapped(storesBeforeBad)},
		{"takes any bytes for a name", "input/refuses names that are no text", wrapped(takesAnyName)},
		{"fails for an owner that is no text", "input/knows nobody by a name that is no text", wrapped(failsForOddOwners)},
		{"refuses the name of a queue that is no text otherwise", "input/knows no queue by a name that is no text", wrapped(failsForOddQueues)},
		{"fails for a receipt that is no text", "input/settles and begins nothing by an id that is no text", wrapped(failsForOddReceipts)},
		{"fails for a cursor that is no text", "input/leaves no doubt of a cursor that no page returned", wrapped(failsForOddCursors)},
		{"ends an error at NUL", "settle/keeps errors as ErrorText has them", wrapped(endsErrorsAtNUL)},
		{"ignores the generation", "input/refuses another shard count or generation", wrapped(ignoresGeneration)},
		{"ignores the generation of an acquire", "acquire/refuses another shard count or generation", wrapped(ignoresGeneration)},
		{"gives a held shard away", "acquire/refuses a held shard", wrapped(givesAway)},
		{"gives tokens that go back with the clock", "acquire/gives larger tokens though the clock stepped back", tokensGoBack},
		{"recovers twice on a late acquire", "acquire/resets nothing when it is repeated after turns", wrapped(resetsOnRepeat)},
		{"strands the jobs of a dead owner", "orphan/pass to the next lease with their receipts", wrapped(strandsOrphans)},
		{"forgets the token", "lease/is shown by its shape", wrapped(forgetsToken)},
		{"refuses a late turn", "turn/counts after the expiry", wrapped(refusesLate)},
		{"renews by an empty turn", "turn/does not renew when there is nothing to do", wrapped(renewsWhenEmpty)},
		{"acquires without a look", "head/is shown to a new lease", wrapped(acquiresBlindly)},
		{"looks only when a lease begins", "head/is the earliest time, due or not", wrapped(looksOnce)},
		{"acquires a paused shard as any other", "head/is none while the queue is paused", wrapped(acquiresPaused)},
		{"takes what an earlier lease left for work", "head/is shown to a new lease", wrapped(countsOrphans)},
		{"renews without a look", "head/is the earliest time, due or not", wrapped(renewsBlindly)},
		{"renews a paused shard as any other", "head/is none while the queue is paused", wrapped(renewsPaused)},
		{"applies a repeated turn twice", "repeat/counts nothing twice", wrapped(countsRepeats)},
		{"claims more when a turn is repeated", "repeat/claims nothing more", wrapped(claimsOnRepeat)},
		{"strands claims on a lost reply", "repeat/gives the same claims in their first order", wrapped(strandsClaims)},
		{"hides a repeat", "repeat/says that it is one", wrapped(hidesRepeats)},
		{"lets a late first call claim", "repeat/leaves nothing to a first call that arrives late", wrapped(ignoresResent)},
		{"forgets what has begun", "begin/is passed to the next owner", wrapped(forgetsBegun)},
		{"begins what is not claimed", "begin/reports what is not claimed", wrapped(reportsAllBegun)},
		{"isolates jobs at their first recovery", "recovered/is claimed beside others once", wrapped(isolatesAtOnce)},
		{"forgets a queue with jobs", "forget/refuses a queue that holds something", wrapped(forgetsJobs)},
		{"forgets a leased queue", "forget/refuses a queue that somebody works", wrapped(forgetsLeased)},
		{"shows every claim as running", "begin/is shown with its lease", wrapped(hidesLeaseOver)},
		{"forgets whether a cancel drops", "cancel/is seen with the claim", wrapped(forgetsWhatCancelsDo)},
		{"says of a lease that is over when it ended", "begin/is shown with its lease", wrapped(keepsLeaseEnds)},
		{"keeps few of the jobs that a node names", "registry/bounds what a node says that it is doing", wrapped(namesFewJobs)},
		{"shows a released shard as somebody's", "stats/show a dead owner's jobs as orphans", wrapped(keepsOwner)},
		{"releases without a word", "wakeups/tells of a release", wrapped(releasesSilently)},
		{"hides nodes that are gone", "registry/lists a node that stopped announcing as gone for an hour", wrapped(hidesGoneNodes)},
		{"lists nodes that are gone for ever", "registry/lists a node that stopped announcing as gone for an hour", wrapped(remembersNodes)},
		{"remembers nodes that it should remove", "registry/forgets what has been gone for an hour", wrapped(remembersNodes)},
		{"lets announcements last as long as the clock makes them", "registry/cuts an announcement that a clock has made longer", wrapped(stretchesNodes)},
		{"tells nodes what others do", "registry/shows in Nodes alone what nodes are doing", wrapped(tellsNodesTheStatus)},
		{"forgets the bounds of a node's queues", "registry/shows in Nodes alone what nodes are doing", wrapped(forgetsBoundsOfNodes)},
		{"ends a drain by a renewal", "registry/keeps a drain while a node renews", wrapped(endsDrainsByRenewal)},
		{"never ends a drain by itself", "registry/ends a drain with the announcement", wrapped(remembersDrains)},
		{"has a node work that stops", "registry/lets a node that stops drain whatever an operator says", wrapped(overrulesNodes)},
		{"drains a node that nobody knows", "registry/refuses to drain an unknown node", wrapped(drainsAnybody)},
		{"forgets why an operator acted", "audit/lists all that it was told of an action", wrapped(forgetsReasons)},
		{"stores the end of an action beside its beginning", "audit/replaces an action when it has ended", wrapped(auditsEndsAnew)},
		{"dates an action by its end", "audit/replaces an action when it has ended", wrapped(datesActionsByTheirEnd)},
		{"ignores how an action ended", "audit/replaces an action when it has ended", wrapped(auditsOnlyTheFirst)},
		{"keeps actions for ever", "audit/keeps a thousand actions", wrapped(keepsActionsForEver)},
		{"lists the oldest action first", "audit/orders actions by when they began", wrapped(listsOldActionsFirst)},
		{"lists an action on two pages", "audit/lists actions by pages", wrapped(listsTheLastActionTwice)},
		{"takes an action without a verb", "audit/refuses a bad action", wrapped(takesActionsWithoutAVerb)},
		{"changes the list of nodes without a word", "wakeups/tells of each change of the list of nodes", wrapped(changesNodesSilently)},
		{"wakes nodes at each renewal", "wakeups/tells of no node that only renews", wrapped(wakesAtRenewals)},
		{"tells everybody of nodes", "wakeups/tells of nodes only who asked for them", wrapped(wakesEverybodyForNodes)},
		{"lets a stale settlement touch a later claim", "skip/the receipt of an earlier claim", wrapped(ignoresReceipts)},
		{"counts a skipped settlement", "skip/and count nothing", wrapped(countsSkipped)},
		{"claims in order of id", "claim/takes the oldest first", wrapped(claimsByID)},
		{"claims a claimed id", "claim/passes over claimed ids", wrapped(claimsClaimed)},
		{"ignores the bytes", "claim/cuts a job at the bytes", wrapped(ignoresBytes)},
		{"overtakes a recovered job", "recovered/is never overtaken", wrapped(forgetsRecoveries)},
		{"claims when paused", "pause/stops claims", wrapped(ignoresPause)},
		{"claims when paused once it has worked", "pause/stops claims", wrapped(pausesLate)},
		{"never sees an old job that is put back", "claim/takes an old job that was put back", wrapped(losesOldPutBacks)},
		{"tells of a cancel once", "cancel/is reported in each reply until it is settled", wrapped(cancelsOnce)},
		{"stumbles over ids that are no text", "step/ignores ids that no job can have", wrapped(stumblesOverIDs)},
		{"takes named dead letters that have changed", "morgue/steps on named ones leave what has changed since", wrapped(ignoresChanges)},
		{"loses the Metas of what is imported", "import/brings all that a dead letter has", wrapped(importsWithoutMeta)},
		{"has what is imported change now", "import/brings all that a dead letter has", wrapped(importsAsOfNow)},
		{"changes what its caller imports", "import/brings all that a dead letter has", wrapped(importsInPlace)},
		{"buries what is imported anew", "import/keeps what changed later", wrapped(importsNewest)},
		{"counts what is imported again", "import/changes and counts nothing when it is repeated", wrapped(importsTwice)},
		{"makes two of a payload that is imported again", "import/changes and counts nothing when it is repeated", wrapped(doublesImports)},
		{"imports what stands before a mistake", "import/refuses what is no dead letter, whole", wrapped(importsInPart)},
		{"revives twice", "morgue/revive doubles nothing when it is repeated", wrapped(revivesTwice)},
		{"adds up the records of an owner", "history/counts nothing twice", wrapped(addsRecords)},
		{"takes a late record for a newer one", "history/takes no late record for a newer one", wrapped(takesLateRecords)},
		{"has one record for all owners", "history/sums up what owners have counted", wrapped(mixesOwners)},
		{"lists what is older than a day", "history/keeps 24 hours", wrapped(keepsHistory)},
		{"removes records that are not listed at once", "history/keeps an hour more, for a clock that is set back", wrapped(removesHistoryAtOnce)},
		{"stores records of any minute", "history/ignores minutes far from the present", wrapped(keepsHistory)},
		{"keeps the history of a forgotten queue", "history/goes with its queue", wrapped(keepsHistory)},
		{"begins steps where the list begins", "history/sums up steps", wrapped(startsStepsAtFrom)},
		{"refuses records of a queue that is not there", "history/ignores a queue that was not declared", wrapped(refusesUndeclared)},
		{"loses jobs beside one that waits", "list/jobs come beside one that waits for a claim", wrapped(skipsBesideWaiting)},
		{"returns an entry on two pages", "list/jobs come in every order, both ways", wrapped(pagesOverlap)},
		{"keeps a handle's data to itself", "store/shares its data between handles", keepsToItself},
		{"lets a released lease turn", "usual/a released lease can neither settle nor claim", wrapped(keepsReleased)},
		{"does not report what is settled twice", "usual/a job is settled once", wrapped(dropsSecond)},
		{"loses the Meta of large jobs", "large/comes back with Meta and all", wrapped(losesMetaOfLarge)},
		{"does not heed Before", "step/leaves alone what was done and pushed anew", wrapped(ignoresBefore)},
		{"takes what was pushed at Before", "step/leaves alone what was pushed at its Before or later", wrapped(takesBefore)},
		{"bounds the last push", "step/takes what was merged into a job from before", wrapped(countsLastPush)},
		{"takes fresh jobs for failed ones", "step/takes jobs with a failure alone", wrapped(takesFresh)},
		{"gives permits beyond the limit", "permits/are held within the limit", wrapped(exceedsPermits)},
		{"lets permits last", "permits/end with their TTL", wrapped(keepsPermits)},
		{"counts the permits of all queues as one", "permits/are the queue's own", wrapped(mixesPermits)},
		{"takes a late call for permits for a new one", "permits/refuses a call that comes late", wrapped(takesLatePermits)},
		{"takes permits away under a smaller limit", "permits/are kept under a smaller limit", wrapped(stripsPermits)},
		{"hides who only wants permits", "permits/lists all who hold or want some", wrapped(forgetsWanting)},
		{"frees permits without a word", "permit wakeups/tells of permits that become free", wrapped(freesPermitsSilently)},
		{"wakes nobody", "wakeups/tells of a push", wrapped(wakesNobody)},
		{"settles one by one", "settler/settles all or none", wrapped(settlesOneByOne)},
		{"claims before it merges what transactions pushed", "transaction/is not overtaken by a later push", wrapped(claimsBeforeItMerges)},
		{"stops all ids for a long inbox", "transaction/does not stop other ids with a long inbox", wrapped(stopsForALongInbox)},
		{"passes over what transactions push", "transaction/does not hold up an id by pushing it without end", wrapped(starvesWhatIsPushed)},
		{"loses what a transaction has put back once it is found", "racing/a working day of transactions", wrapped(losesWhatIsFound)},
		{"fails a turn beside pushes", "transaction/does not hold up an id by pushing it without end", wrapped(failsThirdTurn)},
		{"puts back what a push has moved", "transaction/puts a job back once", wrapped(putsBackTwice)},
		{"fails for one shard that can't be reached", "unreached/one shard can't be reached", wrapped(failsForOne)},
		{"hides the head behind a shard that can't be reached", "unreached/one shard can't be reached", wrapped(hidesNeighbours)},
		{"counts what is not due as ahead", "standing/counts nothing for what is not due, claimed or absent", wrapped(countsAllAhead)},
		{"says nothing of a job that runs alone", "standing/names a claimed job that runs alone", wrapped(hidesAlone)},
		{"shows a lease that was released", "standing/shows the lease", wrapped(standsReleased)},
		{"stops for a damaged record", "damaged/a queued job stops no turn", wrapped(stopsForDamage)},
		{"drops what it can't read", "damaged/a queued job makes room for a push", wrapped(dropsDamage)},
		{"hides what was set aside", "damaged/a claimed job stops no acquire", wrapped(hidesDamage)},
		{"takes a damaged claim for settled", "damaged/a claimed job stops no settlement", wrapped(settlesDamaged)},
		{"discards more than it was told", "damaged/is discarded by its key", wrapped(discardsAll)},
		{"hides shards that have set something aside", "damaged/is told of its shard", wrapped(hidesDamagedShards)},
		{"suspects all shards", "damaged/is told of its shard", wrapped(suspectsAllShards)},
		{"takes unreached shards for sound", "unreached/quarantines name what can't be reached", wrapped(hidesUnreachedQuarantines)},
		{"finds nothing where it can't read", "damaged/is left out by lists and Find", wrapped(findsNoDamage)},
		{"forgets what was set aside", "damaged/keeps its queue from being forgotten", wrapped(forgetsDamage)},
		{"wants fewer turns than none", "limiter/is 0 or more, and stays", wrapped(wantsFewerThanNone)},
		{"wants more turns each time", "limiter/is 0 or more, and stays", wrapped(wantsMoreEachTime)},
		{"hands over all that was left at once", "bounds/hands over what was left in parts", wrapped(handsOverAll)},
		{"hands over all that was left at once, in bytes", "bytes/hands over what was left in parts", wrapped(handsOverAll)},
		{"settles whatever comes in one turn, in bytes", "bytes/puts back in parts", wrapped(settlesAll)},
		{"loses what an acquire does not hand over", "bounds/hands over what was left in parts", wrapped(losesOrphans)},
		{"hands over a job twice", "bounds/hands over what was left in parts", wrapped(handsOverTwice)},
		{"hides what is left to be handed over", "bounds/hands over what was left in parts", wrapped(hidesTheRest)},
		{"hands over nothing when a turn is repeated", "bounds/hands over the same when it is repeated", wrapped(forgetsOrphansOnRepeat)},
		{"numbers no turn that only hands over", "bounds/hands over the same when it is repeated", wrapped(countsNoHandOver)},
		{"claims beside what it hands over as if that were nothing", "bounds/claims less beside what it hands over", wrapped(claimsBesideOrphans)},
		{"claims beside what it hands over as if that were nothing, in bytes", "bytes/claims less beside what it hands over", wrapped(claimsBesideOrphans)},
		{"settles whatever comes in one turn", "bounds/puts back in parts", wrapped(settlesAll)},
		{"loses what it defers", "bounds/buries in parts", wrapped(losesDeferred)},
		{"defers all that follows what it defers", "bounds/skips what was settled, and does not defer it", wrapped(defersSkipped)},
		{"stores no more of a push than a step moves", "bytes/pushes onto more than a step moves", wrapped(pushesAPart)},
		{"says that it reached what it did not", "bounds/bury, delete, revive and purge reach ids in order", wrapped(reachesTooFar)},
		{"buries in one step however much it is", "bounds/bury and delete take a large job in parts", wrapped(buriesAll)},
		{"says that nothing is left of a part", "bounds/says that more is left of what goes in parts", wrapped(hidesParts)},
		{"counts a dead letter with each of its parts", "bounds/says that more is left of what goes in parts", wrapped(countsParts)},
		{"miscounts retries beside pushes", "racing/counts are what lists show", wrapped(miscountsBesidePushes)},
	}
}

func allBroken() []brokenStore {
	return slices.Concat(brokenStores(), brokenLists(), brokenPages(), brokenGroups(), brokenFinds(), brokenRecounts())
}

// TestBrokenStoresFail holds the suite to its purpose: each broken store is
// caught by the case that names its fault, and by that rule. Time is virtual, so
// that a case which waits in vain for a store costs none.
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
					t.Errorf("the failure does not say the rule %q:\n%s", c.Rule, reports)
				}
			})
		})
	}
}

// The cases that catch broken stores pass on the store that these are made of,
// also where the recorder looks.
func TestHealthyStorePasses(t *testing.T) {
	for _, b := range allBroken() {
		reports := record(t, caseNamed(t, b.caught), wrapped(func(s full) full { return s }))
		if len(reports) > 0 {
			t.Errorf("a healthy store fails %q:\n%s", b.caught, strings.Join(reports, "\n"))
		}
	}
}
