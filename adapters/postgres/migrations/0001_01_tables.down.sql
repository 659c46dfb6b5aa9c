-- Unmakes what the files of version 1 make.
DROP VIEW {schema}.counts, {schema}.leases;
DROP TABLE {schema}.minutes, {schema}.dead_payloads, {schema}.dead, {schema}.inbox, {schema}.claimed,
  {schema}.payloads, {schema}.jobs, {schema}.tallies, {schema}.turns, {schema}.shards, {schema}.queues;
