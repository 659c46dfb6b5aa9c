# How much the fuzzing and the large figures do; set them as you like.
FUZZRUNS ?= 40000
CHECKS ?= 10000
STORIES ?= 10000
REPO ?=

# The oldest and the newest Postgres that the store is tested on, beside Debian's, and
# the tests that are run there.
POSTGRES_VERSIONS ?= 14.23.0-beta.17 18.4.0-beta.17
POSTGRES_TESTS ?= Postgres

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Suites that are run once more under a twist: fewer model runs of each are enough.
# What waits more than it computes has more tests at once than there are cores.
TWISTED := ^Test((Redis|Postgres)(Cut|Moving|Transactions)Conformance|RedisUserOfAPrefix|RedisPilesAsMemoryDoes)$$
RACE := test -race -parallel 6 -timeout 30m

# The tests that need servers are a module of their own. They always run: the go
# command's cache doesn't know which servers they found.
INTEGRATION := go -C internal/integration

.PHONY: test test-docker test-postgres lint fuzz bench long

# Everything that must pass, from a fresh clone.
test:
	@scripts/need go git cc redis-server postgres -- valkey-server
	@scripts/formatted
	@scripts/modules vet ./...
	scripts/failures go $(RACE) ./...
	scripts/failures $(INTEGRATION) $(RACE) -count=1 -skip '$(TWISTED)' ./...
	scripts/failures $(INTEGRATION) $(RACE) -count=1 -run '$(TWISTED)' . -rapid.checks=20
	scripts/failures go -C examples/benchmark $(RACE) ./...
	scripts/failures go -C adapters/prometheus $(RACE) ./...
	scripts/failures go -C adapters/otel $(RACE) ./...
	scripts/failures go -C cmd/skein $(RACE) -count=1 ./...

# That tests get their servers from Docker where nothing else is.
test-docker:
	@scripts/need go cc
	SKEIN_TEST_VIA=docker scripts/with-docker $(INTEGRATION) test -race -count=1 -timeout 15m ./testservers

# The Postgres store on other versions, whose binaries npm has.
test-postgres:
	@scripts/need go cc npm
	@for version in $(POSTGRES_VERSIONS); do \
		scripts/other-postgres $$version scripts/ran \
			$(INTEGRATION) test -race -count=1 -timeout 30m -run '$(POSTGRES_TESTS)' ./... || exit; \
	done

# What reads the code instead of running it.
lint:
	@scripts/need go
	@scripts/formatted
	@scripts/modules vet ./...
	@scripts/modules run $(STATICCHECK) ./...

# FUZZRUNS of every fuzz target, some seconds each.
fuzz:
	@scripts/need go
	@scripts/fuzz $(FUZZRUNS)

bench:
	@scripts/need go
	@scripts/modules test -run '^$$' -bench . -benchmem ./...

# The large figures, written to docs/evidence. REPO is the git repository to
# replay; a large one is generated if it isn't given.
long:
	@scripts/need go git cc redis-server postgres
	@CHECKS=$(CHECKS) STORIES=$(STORIES) REPO=$(REPO) scripts/long
