package redis

import (
	"embed"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
)

// library is the shared parts of the scripts that change or list jobs.
const library = " lib/clock lib/base lib/shard lib/bounds lib/plan " +
	"lib/packed lib/items lib/queue lib/groups lib/morgue "

var (
	acquireScript          = join(library + "lib/notes lib/claims lib/head turn/acquire")
	actionsScript          = join("registry/actions")
	alterScript            = join("registry/alter")
	alterShardScript       = join("registry/alter_shard")
	announceScript         = join("lib/clock registry/announce")
	auditScript            = join("lib/clock registry/audit")
	buryScript             = join(library + "lib/steps step/bury")
	cancelScript           = join("lib/clock lib/notes step/cancel")
	changeSchedulesScript  = join(library + "lib/pushes lib/schedules calendar/change_schedules")
	claimedScript          = join(library + "lib/notes lib/claims lib/lease look/claimed")
	configureScript        = join("registry/configure")
	daysScript             = join("lib/clock registry/days")
	declareScript          = join("lib/clock registry/declare")
	declareShardScript     = join("registry/declare_shard")
	declaredScript         = join("registry/declared")
	deleteScript           = join(library + "lib/steps step/delete")
	deletePayloadsScript   = join(library + "lib/steps step/delete_payloads")
	discardScript          = join("step/discard")
	drainScript            = join("lib/clock registry/drain")
	editScript             = join(library + "step/edit")
	editQueuedScript       = join(library + "step/edit_queued")
	expediteScript         = join(library + "lib/steps step/expedite")
	findScript             = join(library + "lib/notes lib/claims lib/faults lib/lease look/find")
	forgetScript           = join("registry/forget")
	forgetShardScript      = join("lib/clock lib/lease registry/forget_shard")
	groupsScript           = join("lib/clock look/groups")
	headsScript            = join("lib/clock lib/head turn/heads")
	historyScript          = join("lib/clock registry/history")
	identifyScript         = join("registry/identify")
	importScript           = join(library + "lib/steps step/import")
	importJobsScript       = join(library + "lib/steps step/import_jobs")
	importPastScript       = join("lib/clock lib/base lib/shard lib/full lib/past step/import_past")
	limitsScript           = join("lib/clock lib/base limiter/limits")
	nextTicksScript        = join("lib/clock calendar/next_ticks")
	nodesScript            = join("lib/clock registry/nodes")
	oldestScript           = join("lib/clock lib/base lib/packed lib/oldest look/oldest")
	pendingScript          = join(library + "lib/notes lib/claims lib/faults look/pending")
	permitScript           = join("lib/clock registry/permit")
	placesScript           = join("lib/clock lib/base look/places")
	purgeScript            = exchange.AllowOOM(reviveScript)
	pushScript             = join("push/push_plain" + library + "lib/full lib/past lib/pushes push/push")
	pushTogetherScript     = join("push/push_together")
	recordScript           = join("lib/clock lib/base lib/days registry/record")
	recountScript          = join(library + "lib/notes lib/claims lib/oldest lib/counts lib/schedules step/recount")
	relistScheduleScript   = join("calendar/relist_schedule")
	releaseScript          = join("turn/release")
	removeSchedulesScript  = exchange.AllowOOM(changeSchedulesScript)
	renewScript            = join("lib/clock lib/head turn/renew")
	retireScript           = join("registry/retire")
	reviveScript           = join(library + "lib/full lib/past lib/steps step/revive_purge")
	rightsScript           = join("registry/rights")
	rowsScript             = join(library + "lib/steps look/rows")
	scheduleNamesScript    = join("lib/clock calendar/schedule_names")
	schedulesScript        = join("lib/clock calendar/schedules")
	setAsideScript         = join(library + "lib/notes lib/claims lib/faults lib/aside step/set_aside")
	setAsideListScript     = join("lib/clock lib/base look/set_aside_list")
	setAsideScheduleScript = join(
		"lib/clock lib/base lib/shard lib/plan lib/schedules lib/aside calendar/set_aside_schedule")
	statsScript   = join("lib/clock look/stats")
	stopScript    = join("lib/clock lib/base lib/limiters limiter/stop")
	takeScript    = join("lib/clock lib/base lib/limiters limiter/take")
	ticksScript   = join("lib/clock calendar/ticks")
	trackScript   = join("lib/clock registry/track")
	trackedScript = join("registry/tracked")
	turnScript    = join("lib/notes lib/full lib/past turn/turn_plain" + library +
		"lib/claims lib/head turn/turn_settle turn/turn_claim turn/turn")
)

// sources are the parts of scripts. A part that other parts need lists in a comment what it
// Defines, and every part lists what it Uses. The part that a script is named after has its flags
// in the first line, and then its KEYS, its ARGV and what it Returns.
//
//go:embed lua
var sources embed.FS

// read returns the text of a part, which the compiler has embedded.
func read(name string) string {
	text, _ := sources.ReadFile("lua/" + name + ".lua")
	return string(text)
}

// join returns the script of parts, whose names are separated by spaces.
func join(names string) *exchange.Script { return exchange.NewScript(read, names) }
