package redis

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
)

// Flags of scripts, in the first line.
const (
	refusedWhenFull = "#!lua"
	passesWhenFull  = "#!lua flags=allow-oom"
	onlyReads       = "#!lua flags=no-writes"
)

// scriptFlags are the scripts by name, with the flags of each. A full server refuses a script that
// stores more than it removes, so that the queued jobs can be handled. It accepts all scripts that
// handle them, end them, renew a lease or pause.
var scriptFlags = map[string]struct {
	script *exchange.Script
	flags  string
}{
	"actions":            {actionsScript, onlyReads},
	"audit":              {auditScript, passesWhenFull},
	"acquire":            {acquireScript, passesWhenFull},
	"announce":           {announceScript, passesWhenFull},
	"bury":               {buryScript, passesWhenFull},
	"cancel":             {cancelScript, passesWhenFull},
	"change_schedules":   {changeSchedulesScript, refusedWhenFull},
	"claimed":            {claimedScript, onlyReads},
	"days":               {daysScript, onlyReads},
	"declare":            {declareScript, passesWhenFull},
	"delete":             {deleteScript, passesWhenFull},
	"configure":          {configureScript, passesWhenFull},
	"delete_payloads":    {deletePayloadsScript, passesWhenFull},
	"discard":            {discardScript, passesWhenFull},
	"drain":              {drainScript, passesWhenFull},
	"edit":               {editScript, refusedWhenFull},
	"edit_queued":        {editQueuedScript, refusedWhenFull},
	"revive_purge":       {reviveScript, refusedWhenFull},
	"expedite":           {expediteScript, passesWhenFull},
	"find":               {findScript, onlyReads},
	"forget":             {forgetScript, passesWhenFull},
	"groups":             {groupsScript, onlyReads},
	"heads":              {headsScript, onlyReads},
	"history":            {historyScript, onlyReads},
	"places":             {placesScript, onlyReads},
	"rows":               {rowsScript, onlyReads},
	"identify":           {identifyScript, passesWhenFull},
	"import":             {importScript, refusedWhenFull},
	"import_jobs":        {importJobsScript, refusedWhenFull},
	"import_past":        {importPastScript, refusedWhenFull},
	"limits":             {limitsScript, onlyReads},
	"next_ticks":         {nextTicksScript, onlyReads},
	"nodes":              {nodesScript, onlyReads},
	"declare_shard":      {declareShardScript, passesWhenFull},
	"oldest":             {oldestScript, onlyReads},
	"alter":              {alterScript, passesWhenFull},
	"alter_shard":        {alterShardScript, passesWhenFull},
	"pending":            {pendingScript, onlyReads},
	"permit":             {permitScript, passesWhenFull},
	"purge":              {purgeScript, passesWhenFull},
	"push":               {pushScript, refusedWhenFull},
	"push_together":      {pushTogetherScript, refusedWhenFull},
	"record":             {recordScript, passesWhenFull},
	"recount":            {recountScript, refusedWhenFull},
	"relist_schedule":    {relistScheduleScript, passesWhenFull},
	"release":            {releaseScript, passesWhenFull},
	"renew":              {renewScript, passesWhenFull},
	"remove_schedules":   {removeSchedulesScript, passesWhenFull},
	"retire":             {retireScript, passesWhenFull},
	"rights":             {rightsScript, onlyReads},
	"schedule_names":     {scheduleNamesScript, onlyReads},
	"schedules":          {schedulesScript, onlyReads},
	"set_aside":          {setAsideScript, passesWhenFull},
	"set_aside_list":     {setAsideListScript, onlyReads},
	"set_aside_schedule": {setAsideScheduleScript, passesWhenFull},
	"stats":              {statsScript, onlyReads},
	"stop":               {stopScript, passesWhenFull},
	"take":               {takeScript, passesWhenFull},
	"ticks":              {ticksScript, onlyReads},
	"track":              {trackScript, refusedWhenFull},
	"tracked":            {trackedScript, onlyReads},
	"turn":               {turnScript, passesWhenFull},
	"declared":           {declaredScript, passesWhenFull},
	"forget_shard":       {forgetShardScript, passesWhenFull},
}

// embedded are the parts of scripts by name, as they are embedded.
func embedded(t *testing.T) map[string]string {
	t.Helper()
	parts := map[string]string{}
	err := fs.WalkDir(sources, "lua", func(file string, entry fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".lua"); ok && err == nil {
			name = strings.TrimPrefix(name, "lua/")
			parts[name] = read(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// Each embedded script is in the table, which states whether a full server runs it.
func TestScriptsSayWhetherAFullServerRunsThem(t *testing.T) {
	for name, text := range embedded(t) {
		if _, ok := scriptFlags[path.Base(name)]; strings.HasPrefix(text, "#!") && !ok {
			t.Errorf("the script %s is not in the table of flags", name)
		}
	}
	for name, s := range scriptFlags {
		if got, _, _ := strings.Cut(s.script.Text, "\n"); got != s.flags {
			t.Errorf("%s begins with %q, want %q", name, got, s.flags)
		}
	}
}

func TestScriptsSayWhatTheyTake(t *testing.T) {
	for name, s := range scriptFlags {
		if len(s.script.SHA) != 40 {
			t.Errorf("%s has the sum %q", name, s.script.SHA)
		}
		for _, part := range []string{"\n-- KEYS: ", "\n-- ARGV: ", "\n-- Returns "} {
			if !strings.Contains(s.script.Text, part) {
				t.Errorf("%s has no line %q", name, part)
			}
		}
	}
}

// Before its first call the store checks whether the user may run each command that a script
// calls, except publishing, which may fail.
func TestRightsNameEveryCommand(t *testing.T) {
	calls := regexp.MustCompile(`(?:call|fetch|run|scan)\('([A-Z]+)'`)
	used := map[string]bool{"TIME": true}
	for _, text := range embedded(t) {
		for _, call := range calls.FindAllStringSubmatch(text, -1) {
			used[call[1]] = true
		}
	}
	delete(used, "SPUBLISH")

	var want, got []string
	for command := range used {
		want = append(want, command)
	}
	slices.Sort(want)

	list, _, _ := strings.Cut(read("registry/rights"), "}\n")
	for _, name := range regexp.MustCompile(`'([A-Z]+)'`).FindAllStringSubmatch(list, -1) {
		got = append(got, name[1])
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the commands that rights.lua names (-used +named):\n%s", diff)
	}
}
