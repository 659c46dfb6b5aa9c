-- The keys of a shard; KEYS[1] is the first.
-- Uses: call, sub.
-- Defines: base, META, JOBS, READY, PARKED, CLAIMS, BYID, METAS, RTIME, RID, RCOUNT, DEAD, DTIME,
--   DID, DMETAS, GROUPS, LEASE, CANCELS, ASIDE, PAYLOADS, DPAYLOADS, GROUPED, merge_rule,
--   read_meta, wake.
--
-- META is the record of the shard, a string: "index paused shards generation version", and at its
-- end without a space the merge rule unless it is the default, '=' and the number of
-- storekit.MergeCode, as in "1 0 5 1 1764230400000000=-1", and '=1' behind it if the rule has
-- core.SamePush, which no script needs. index and paused are 1 or 0 at a fixed place, the first
-- and the third byte. version orders pauses; see registry/declare.lua. The queue's own record is
-- the same, followed by " +" or the nonce of a Forget.
--
-- Scripts read and check everything, and plan their writes, before they write.
--
-- The server that a migrating slot leaves refuses a command on an absent key. The server that the
-- slot moves to refuses nothing to a call that was redirected to it: a key that has not arrived
-- yet looks empty, unless one command names it together with another key. So each key that is not
-- in KEYS stands in an EXISTS with another before it is read or written.

local base = sub(KEYS[1], 1, -2)
local META, JOBS, READY, PARKED, CLAIMS, BYID, METAS = KEYS[1], base .. 'j', base .. 'r', base .. 'w', base .. 'c', base .. 'i', base .. 't'
local RTIME, RID, RCOUNT = base .. 'rt', base .. 'ri', base .. 'rc'
local DEAD, DTIME, DID, DMETAS, GROUPS = base .. 'x', base .. 'xt', base .. 'xi', base .. 'xm', base .. 'xg'
local LEASE, CANCELS = base .. 'l', base .. 'k'
local ASIDE = base .. 'q' -- set-aside records
local PAYLOADS, DPAYLOADS = base .. 'p:', base .. 'd:' -- an id follows
local GROUPED = base .. 'g:' -- the name of a group follows: its dead letters by time

-- merge_rule is that of the shard's queue once read_meta has been called; lib/items.lua reads it.
local merge_rule = 0

-- read_meta returns whether the shard's queue lists its jobs by id, whether it is
-- paused, and its layout, "shards generation"; nil if there is no such shard.
local function read_meta()
  local record = call('GET', META) or ''
  local index, paused, layout = string.match(record, '^(%d) (%d) (%d+ %d+)')
  merge_rule = tonumber(string.match(record, '=(-?%d+)=?1?$') or 0)
  if index then return index == '1', paused == '1', layout end
end

-- wake sends a wake-up for the shard. A script calls it last, and with pcall: a user without the
-- right to publish must not undo the script's writes.
local function wake() redis.pcall('SPUBLISH', base .. 'wake', '') end
