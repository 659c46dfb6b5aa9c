package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// library is the shared parts of the scripts that change or list jobs.
const library = " lib/clock lib/base lib/shard lib/bounds lib/plan lib/packed lib/items lib/queue lib/groups lib/morgue "

var (
	acquireScript        = newScript(library + "lib/notes lib/claims lib/head turn/acquire")
	actionsScript        = newScript("registry/actions")
	announceScript       = newScript("lib/clock registry/announce")
	auditScript          = newScript("lib/clock registry/audit")
	buryScript           = newScript(library + "lib/steps step/bury")
	cancelScript         = newScript("lib/clock lib/notes step/cancel")
	claimedScript        = newScript(library + "lib/notes lib/claims lib/lease lib/text look/claimed")
	declareScript        = newScript("lib/clock registry/declare")
	declareShardScript   = newScript("registry/declare_shard")
	declaredScript       = newScript("registry/declared")
	deleteScript         = newScript(library + "lib/steps step/delete")
	deletePayloadsScript = newScript(library + "lib/steps step/delete_payloads")
	discardScript        = newScript("step/discard")
	drainScript          = newScript("lib/clock registry/drain")
	editScript           = newScript(library + "step/edit")
	expediteScript       = newScript(library + "lib/steps step/expedite")
	findScript           = newScript(library + "lib/notes lib/claims lib/faults lib/lease look/find")
	forgetScript         = newScript("registry/forget")
	forgetShardScript    = newScript("lib/clock lib/lease registry/forget_shard")
	groupsScript         = newScript("lib/clock look/groups")
	headsScript          = newScript("lib/clock lib/head turn/heads")
	historyScript        = newScript("lib/clock registry/history")
	importScript         = newScript(library + "lib/steps step/import")
	importJobsScript     = newScript(library + "lib/steps step/import_jobs")
	nodesScript          = newScript("lib/clock registry/nodes")
	oldestScript         = newScript("lib/clock lib/base lib/packed lib/oldest look/oldest")
	pauseScript          = newScript("registry/pause")
	pauseShardScript     = newScript("registry/pause_shard")
	permitScript         = newScript("lib/clock registry/permit")
	placesScript         = newScript("lib/clock lib/base look/places")
	purgeScript          = allowOOM(reviveScript)
	pushScript           = newScript("push/push_plain" + library + "push/push")
	recordScript         = newScript("lib/clock lib/base registry/record")
	recountScript        = newScript(library + "lib/notes lib/claims lib/oldest lib/counts step/recount")
	releaseScript        = newScript("turn/release")
	renewScript          = newScript("lib/clock lib/head turn/renew")
	retireScript         = newScript("registry/retire")
	reviveScript         = newScript(library + "lib/steps step/revive_purge")
	rightsScript         = newScript("registry/rights")
	rowsScript           = newScript(library + "lib/steps lib/text look/rows")
	setAsideScript       = newScript(library + "lib/notes lib/claims lib/faults step/set_aside")
	setAsideListScript   = newScript("lib/clock lib/base look/set_aside_list")
	statsScript          = newScript("lib/clock look/stats")
	trackScript          = newScript("lib/clock registry/track")
	trackedScript        = newScript("registry/tracked")
	turnScript           = newScript("lib/notes turn/turn_plain" + library + "lib/claims lib/head turn/turn_settle turn/turn_claim turn/turn")
)

// script is a Lua script as it is sent: a line of flags, and then its parts.
type script struct {
	text  string
	sha   string
	parts []scriptPart
	// reads is true if the server lets the script write nothing.
	reads bool
}

// scriptPart is a file of a script.
type scriptPart struct {
	// name is that of the file below lua, without .lua.
	name string
	// first is the script's line that the file begins at, and skipped how many lines are left out at
	// the file's beginning.
	first, skipped int
}

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

// newScript joins parts, whose names are separated by spaces. The flags of the last part come
// first.
func newScript(names string) *script {
	var flags string
	var body strings.Builder
	var parts []scriptPart
	line := 2
	for _, name := range strings.Fields(names) {
		text, p := read(name), scriptPart{name: name, first: line}
		if strings.HasPrefix(text, "#!") {
			flags, text, _ = strings.Cut(text, "\n")
			p.skipped = 1
		}
		body.WriteString(text)
		parts = append(parts, p)
		line += strings.Count(text, "\n")
	}
	return (&script{parts: parts}).withText(flags + "\n" + body.String())
}

func (s *script) withText(text string) *script {
	sum := sha1.Sum([]byte(text))
	flags, _, _ := strings.Cut(text, "\n")
	return &script{text: text, sha: hex.EncodeToString(sum[:]), parts: s.parts, reads: strings.Contains(flags, "no-writes")}
}

// allowOOM returns the script as one that a full server also runs, since it makes room.
func allowOOM(s *script) *script {
	return s.withText(strings.Replace(s.text, "#!lua\n", "#!lua flags=allow-oom\n", 1))
}

// scriptLine matches the server's name for a line of a script in an error.
var scriptLine = regexp.MustCompile(`user_script:\d+`)

// locate returns an error of the server in which each line of the script is named by its file, as
// in lua/turn/turn.lua:30. It returns other errors unchanged, and also that of a plain command,
// which has no script.
func (s *script) locate(err error) error {
	var reply goredis.Error
	if s == nil || !errors.As(err, &reply) || !scriptLine.MatchString(reply.Error()) {
		return err
	}
	return replyError(scriptLine.ReplaceAllStringFunc(reply.Error(), func(found string) string {
		line, _ := strconv.Atoi(strings.TrimPrefix(found, "user_script:"))
		return s.fileLine(line)
	}))
}

// fileLine returns the file, below this directory, and the line in it that a line of the script
// comes from.
func (s *script) fileLine(line int) string {
	for _, p := range slices.Backward(s.parts) {
		if line >= p.first {
			return fmt.Sprintf("lua/%s.lua:%d", p.name, line-p.first+1+p.skipped)
		}
	}
	return fmt.Sprintf("lua/%s.lua:1", s.parts[len(s.parts)-1].name) // the flags
}
