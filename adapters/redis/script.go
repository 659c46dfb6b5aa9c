package redis

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
	"strings"
)

// script is a Lua script as it is sent.
type script struct {
	text string
	sha  string
}

// sources are the scripts' parts. The first line of the one that is named after
// the script has its flags, and the comment after it says what it takes and gives.
//
//go:embed lua
var sources embed.FS

// read gives a part, which the compiler has put there.
func read(name string) string {
	text, _ := sources.ReadFile("lua/" + name + ".lua")
	return string(text)
}

// library is what scripts share that change jobs or list them.
var library = []string{"lib/clock", "lib/base", "lib/plan", "lib/records", "lib/entities", "lib/payloads", "lib/queued", "lib/dead"}

// compose makes a script of its parts, with the flags of the last in front: a
// part before the library is tried without it.
func compose(parts ...[]string) *script {
	var flags string
	var b strings.Builder
	for _, name := range slices.Concat(parts...) {
		text := read(name)
		if strings.HasPrefix(text, "#!") {
			flags, text, _ = strings.Cut(text, "\n")
		}
		b.WriteString(text)
	}
	return scriptOf(flags + "\n" + b.String())
}

func scriptOf(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// alone is a script that needs no library, clocked one that needs the clock of it,
// and shared one that needs all.
func alone(name string) *script                  { return compose([]string{name}) }
func clocked(name string) *script                { return compose([]string{"lib/clock", name}) }
func shared(name string, more ...string) *script { return compose(library, more, []string{name}) }

// freeing is the script as one that passes on a full server, since it makes room.
func freeing(s *script) *script {
	return scriptOf(strings.Replace(s.text, "#!lua\n", "#!lua flags=allow-oom\n", 1))
}

var (
	acquireScript    = clocked("acquire")
	announceScript   = clocked("announce")
	buryScript       = shared("bury", "lib/steps")
	cancelScript     = clocked("cancel")
	claimedScript    = compose([]string{"lib/clock", "lib/lasting", "claimed"})
	declareScript    = alone("declare")
	deleteScript     = shared("delete", "lib/steps")
	editScript       = shared("edit")
	expediteScript   = shared("expedite", "lib/steps")
	findScript       = shared("find", "lib/lasting")
	forgetScript     = alone("forget")
	headsScript      = clocked("heads")
	historyScript    = alone("history")
	listScript       = shared("list")
	nodesScript      = clocked("nodes")
	openScript       = alone("open")
	pauseScript      = alone("pause")
	pauseShardScript = alone("pauseshard")
	purgeScript      = freeing(shared("exhume"))
	pushScript       = compose([]string{"push_plain"}, library, []string{"push"})
	recountScript    = shared("recount", "lib/counts")
	releaseScript    = alone("release")
	renewScript      = clocked("renew")
	reviveScript     = shared("exhume")
	rightsScript     = alone("rights")
	statsScript      = compose([]string{"lib/clock", "lib/counts", "stats"})
	vacantScript     = compose([]string{"lib/clock", "lib/lasting", "vacant"})
	turnScript       = compose([]string{"turn_plain"}, library, []string{"turn", "turn_settle", "turn_claim", "turn_end"})
)
