// Package testservers gives tests real servers. A server comes from the first of these that is
// available:
//
//   - the environment: SKEIN_TEST_REDIS and SKEIN_TEST_VALKEY are URLs as [redis.ParseURL] reads
//     them, SKEIN_TEST_REDIS_CLUSTER one for [redis.ParseClusterURL], SKEIN_TEST_POSTGRES one for
//     [pgxpool.ParseConfig];
//   - this machine's own program, redis-server, valkey-server, postgres or pgbouncer in PATH (or
//     where Debian has the last two), started on a free loopback port, in a directory of its own
//     that goes with it;
//   - Docker, with the images redis:7, valkey/valkey:8 and postgres:15. There is no image for
//     PgBouncer.
//
// SKEIN_TEST_VIA=local or docker selects only that source. A test that gets no server fails, and
// its message describes how to get one. Only tests that need Valkey, PgBouncer, a standby, a small
// disk or a server that can be frozen are skipped without these. In CI, where the environment
// variable CI is true, they fail instead.
//
// SKEIN_TEST_POSTGRES_MAJOR is the major version that every Postgres must have, such as 14, if it
// is set.
//
// A shared server starts at its first use and serves all tests of the process, each below a
// [Prefix] or in a [Schema] of its own. A server from the environment may have other users. A test
// that disturbs its server takes one for itself. No server outlives the process that started it,
// even one that was killed.
package testservers
