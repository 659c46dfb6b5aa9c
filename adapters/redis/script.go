package redis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"
)

// script is a Lua script as it is sent.
type script struct {
	text string
	sha  string
}

// alone is a script as it stands.
func alone(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}

// shared is a script with the prelude, after its first line, which has its flags.
func shared(text string) *script {
	flags, body, _ := strings.Cut(text, "\n")
	return alone(flags + "\n" + prelude + "\n" + body)
}

// quick is a script of two parts, with the prelude before the second: the first
// returns if it can do the work without.
func quick(plain, text string) *script {
	flags, body, _ := strings.Cut(text, "\n")
	return alone(flags + "\n" + plain + prelude + "\n" + body)
}

// freeing is a script that passes on a full server, since it makes room.
func freeing(text string) string {
	return strings.Replace(text, "#!lua\n", "#!lua flags=allow-oom\n", 1)
}

//go:embed lua/prelude.lua
var prelude string

var (
	//go:embed lua/acquire.lua
	acquireText string
	//go:embed lua/announce.lua
	announceText string
	//go:embed lua/bury.lua
	buryText string
	//go:embed lua/cancel.lua
	cancelText string
	//go:embed lua/claimed.lua
	claimedText string
	//go:embed lua/declare.lua
	declareText string
	//go:embed lua/delete.lua
	deleteText string
	//go:embed lua/edit.lua
	editText string
	//go:embed lua/exhume.lua
	exhumeText string
	//go:embed lua/expedite.lua
	expediteText string
	//go:embed lua/find.lua
	findText string
	//go:embed lua/heads.lua
	headsText string
	//go:embed lua/history.lua
	historyText string
	//go:embed lua/list.lua
	listText string
	//go:embed lua/nodes.lua
	nodesText string
	//go:embed lua/open.lua
	openText string
	//go:embed lua/pause.lua
	pauseText string
	//go:embed lua/pauseshard.lua
	pauseShardText string
	//go:embed lua/push.lua
	pushText string
	//go:embed lua/push_plain.lua
	pushPlainText string
	//go:embed lua/release.lua
	releaseText string
	//go:embed lua/renew.lua
	renewText string
	//go:embed lua/stats.lua
	statsText string
	//go:embed lua/turn.lua
	turnText string
	//go:embed lua/turn_plain.lua
	turnPlainText string
)

var (
	acquireScript    = alone(acquireText)
	announceScript   = alone(announceText)
	buryScript       = shared(buryText)
	cancelScript     = alone(cancelText)
	claimedScript    = alone(claimedText)
	declareScript    = alone(declareText)
	deleteScript     = shared(deleteText)
	editScript       = shared(editText)
	expediteScript   = shared(expediteText)
	findScript       = shared(findText)
	headsScript      = alone(headsText)
	historyScript    = alone(historyText)
	listScript       = shared(listText)
	nodesScript      = alone(nodesText)
	openScript       = alone(openText)
	pauseScript      = alone(pauseText)
	pauseShardScript = alone(pauseShardText)
	purgeScript      = shared(freeing(exhumeText))
	pushScript       = quick(pushPlainText, pushText)
	releaseScript    = alone(releaseText)
	renewScript      = alone(renewText)
	reviveScript     = shared(exhumeText)
	statsScript      = alone(statsText)
	turnScript       = quick(turnPlainText, turnText)
)
