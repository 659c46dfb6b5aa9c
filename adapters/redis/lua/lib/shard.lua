-- The keys of a shard, of which KEYS[1] is the first.
-- Uses: call, sub.
-- Defines: base, META, JOBS, READY, PARKED, CLAIMS, BYID, METAS, RTIME, RID, RCOUNT, DEAD,
--   DTIME, DID, DMETAS, GROUPS, LEASE, CANCELS, ASIDE, PAYLOADS, DPAYLOADS, GROUPED, read_meta, wake.
--
-- Scripts read and check everything, and plan their writes, before they write.
--
-- The server that a migrating slot comes from refuses a command on an absent key.
-- The server that it goes to refuses nothing to a call that was sent on to it: a key
-- that has not come yet looks empty, unless it is asked for in one command with
-- another. So each key that is not in KEYS stands in an EXISTS with another before it
-- is read or written.

local base = sub(KEYS[1], 1, -2)
local META, JOBS, READY, PARKED, CLAIMS, BYID, METAS = KEYS[1], base .. 'j', base .. 'r', base .. 'w', base .. 'c', base .. 'i', base .. 't'
local RTIME, RID, RCOUNT = base .. 'rt', base .. 'ri', base .. 'rc'
local DEAD, DTIME, DID, DMETAS, GROUPS = base .. 'x', base .. 'xt', base .. 'xi', base .. 'xm', base .. 'xg'
local LEASE, CANCELS = base .. 'l', base .. 'k'
local ASIDE = base .. 'q' -- what was set aside
local PAYLOADS, DPAYLOADS = base .. 'p:', base .. 'd:' -- an id follows
local GROUPED = base .. 'g:' -- the name of a group follows: its dead letters by time

-- read_meta returns whether the shard's queue lists its jobs by id, whether it is
-- paused, and its layout, "shards generation"; nil if there is no such shard.
local function read_meta()
  local index, paused, layout = string.match(call('GET', META) or '', '^(%d) (%d) (%d+ %d+)')
  if index then return index == '1', paused == '1', layout end
end

-- wake sends a wake-up for the shard. A script calls it last: that the user may not
-- publish must not undo what was written.
local function wake() redis.pcall('SPUBLISH', base .. 'wake', '') end
