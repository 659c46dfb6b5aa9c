-- Unmakes what the files of version 1 make.
DROP VIEW {schema}.counts, {schema}.leases;
DROP FUNCTION {schema}.since, {schema}.clock, {schema}.later, {schema}.pushed_at, {schema}.add_payloads, {schema}.merge,
  {schema}.merge_rest, {schema}.bury, {schema}.payloads_of, {schema}.take_jobs, {schema}.tally, {schema}.note_early,
  {schema}.take_inbox, {schema}.inbox_limit, {schema}.merge_inbox, {schema}.lock_shard, {schema}.shard_number, {schema}.no_shard, {schema}.look,
  {schema}.take_tallies, {schema}.fold, {schema}.head, {schema}.overdue, {schema}.look_from, {schema}.next_rescan, {schema}.declare, {schema}.push, {schema}.header, {schema}.as_claim,
  {schema}.cancels, {schema}.hand_over, {schema}.acquire, {schema}.remaining, {schema}.limit_waits, {schema}.renew,
  {schema}.heads, {schema}.settle_claimed, {schema}.begin_claimed, {schema}.choose, {schema}.choose_some, {schema}.claim_due, {schema}.claim_together, {schema}.claim_each, {schema}.leave_rest,
  {schema}.settle_turn, {schema}.sums, {schema}.add_minute, {schema}.repeat_turn, {schema}.whole_turn, {schema}.turn, {schema}.push_inbox, {schema}.settle_transacted, {schema}.tell;
DROP TYPE {schema}.reply, {schema}.coming;
DROP TABLE {schema}.minutes, {schema}.dead_payloads, {schema}.dead, {schema}.inbox, {schema}.claimed,
  {schema}.payloads, {schema}.jobs, {schema}.tallies, {schema}.turns, {schema}.shards, {schema}.queues;
