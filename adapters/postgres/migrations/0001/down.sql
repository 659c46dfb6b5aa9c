-- Removes what the files of version 1 make.
DROP VIEW {schema}.counts, {schema}.leases;
DROP FUNCTION {schema}.acquire, {schema}.add_payloads, {schema}.arrivals_of, {schema}.admit_groups, {schema}.audit,
  {schema}.apply_push_rule, {schema}.begin_claimed, {schema}.bury, {schema}.change_counts, {schema}.change_groups, {schema}.change_schedules, {schema}.changed_here, {schema}.choose_due,
  {schema}.choose_some_due, {schema}.claim_due, {schema}.claim_each, {schema}.claim_together, {schema}.clock, {schema}.configure, {schema}.count_schedules,
  {schema}.cut_payload, {schema}.end_parts,
  {schema}.dead_payloads_of, {schema}.declare, {schema}.find_payloads, {schema}.find_shard, {schema}.first_shard, {schema}.fold, {schema}.fold_counts, {schema}.forget,
  {schema}.hand_over, {schema}.handed_over, {schema}.keep_past, {schema}.keep_marks, {schema}.marks, {schema}.drop_entries, {schema}.drop_repeats, {schema}.find_repeats, {schema}.prune_once, {schema}.count_stale, {schema}.prune_past, {schema}.head, {schema}.heads, {schema}.held, {schema}.inbox_mark, {schema}.inbox_rows, {schema}.inbox_rows_of, {schema}.known_records, {schema}.later, {schema}.letter_of, {schema}.limit_lock_waits, {schema}.lock_limiters, {schema}.prune_limiters, {schema}.stop, {schema}.take, {schema}.list_places, {schema}.list_schedule_names,
  {schema}.lock_lease, {schema}.lock_shard, {schema}.lock_target, {schema}.lower_floor, {schema}.count_superseded, {schema}.dead_jobs, {schema}.merge, {schema}.merge_arrival, {schema}.merge_by_rule, {schema}.merge_dead_payloads, {schema}.merge_payload, {schema}.push_by_rule, {schema}.push_together, {schema}.merge_and_look, {schema}.merge_bounds, {schema}.merge_ids, {schema}.merge_inbox,
  {schema}.merge_inboxes, {schema}.merge_rest, {schema}.merge_taken, {schema}.merge_waiting, {schema}.missing_layout, {schema}.missing_shard, {schema}.new_arrival, {schema}.next_rescan, {schema}.next_scan, {schema}.oldest, {schema}.park,
  {schema}.notify_wakeups, {schema}.payloads_of, {schema}.permit, {schema}.push, {schema}.push_in_tx, {schema}.record, {schema}.recount, {schema}.release,
  {schema}.remaining, {schema}.renew, {schema}.replaces, {schema}.repeat_turn,
  {schema}.reply_cancellations, {schema}.reply_claims, {schema}.reply_header, {schema}.rescan_due, {schema}.rescan_from,
  {schema}.rescan_if_due, {schema}.scan_from, {schema}.set_merge, {schema}.set_paused, {schema}.set_schedule_aside, {schema}.settle_and_merge, {schema}.settle_claimed, {schema}.settle_in_tx, {schema}.settle_payload_in_tx,
  {schema}.step_bury_or_delete, {schema}.step_cancel, {schema}.step_delete_payloads, {schema}.step_edit, {schema}.step_edit_queued, {schema}.step_expedite, {schema}.step_import, {schema}.step_import_jobs, {schema}.step_import_past,
  {schema}.step_revive_or_purge, {schema}.take_count_changes, {schema}.take_dead, {schema}.take_inbox, {schema}.take_payloads, {schema}.take_slots, {schema}.ticks, {schema}.track, {schema}.turn, {schema}.turn_claims, {schema}.turn_fast,
  {schema}.canonical_json, {schema}.canonical_number, {schema}.check_entry, {schema}.has_control, {schema}.instant_of,
  {schema}.push_bytes, {schema}.push_json, {schema}.shard_of, {schema}.shortest, {schema}.tags_of, {schema}.utf16_order,
  {schema}.unfit_session, {schema}.unite_tags, {schema}.unpark;
DROP VIEW {schema}.reply;
DROP TYPE {schema}.step_reply, {schema}.settlement;
DROP TABLE {schema}.actions, {schema}.tracked, {schema}.claimed, {schema}.count_changes, {schema}.day_records, {schema}.dead_groups, {schema}.dead_letter_payloads, {schema}.dead_letters,
  {schema}.identity, {schema}.minute_records, {schema}.inbox, {schema}.jobs, {schema}.nodes, {schema}.once, {schema}.past, {schema}.payloads, {schema}.permits, {schema}.limiters, {schema}.turn_log,
  {schema}.quarantine, {schema}.schedule_names, {schema}.schedules, {schema}.shards, {schema}.queues;
DROP TYPE {schema}.arrival_kind;
