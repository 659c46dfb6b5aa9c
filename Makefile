# The amounts of fuzzing and of the large figures; set them as you like.
FUZZRUNS ?= 40000
CHECKS ?= 10000
STORIES ?= 10000
REPO ?=

# How many jobs and shards make measure uses.
JOBS ?= 100000
SHARDS ?= 100
MEASURED ?= (HistoryOfADay|ListsOfManyShards|LatestBesideUnion|RedisSlowest|PostgresSlowest)$$

# The oldest and the newest Postgres that the store is tested on, besides Debian's, and the tests
# that are run there.
POSTGRES_VERSIONS ?= 14.23.0-beta.17 18.4.0-beta.17
POSTGRES_TESTS ?= Postgres

# These tests make a standby with pg_basebackup, which npm's packages lack, so they run only on
# Debian's Postgres.
STANDBYS := ^TestPostgres(APushWaitsForTheStandby|AHotStandbyCanBeLookedAt|ListenFollowsAFailover|AFailoverLosesNothing|StandbyTakesThePrimarysPlace)$$

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# make test passes -short: tests marked by tier.Long wait for make test-all, and random models run
# a fifth of their histories. CONTRIBUTING.md has the table of what runs where.
#
# Suites that repeat others while something disturbs them. Only make test-all runs them, with fewer
# runs of the random model.
TWISTED := ^Test((Redis|Postgres)(Cut|Moving|Transactions)Conformance|RedisUserOfAPrefix)$$

# Years of virtual time, which the race detector makes some thirty times longer. Only make test-all
# runs them, without it.
YEARS := ^TestTicksFireOnceForAYear$$

# Tests on servers wait more than they compute, so more of them run at once than there are cores, in
# three packages. They always run, because the go command's cache doesn't know which servers they
# found.
SERVERS := -vet=off -p 3 -parallel 6 -count=1 -timeout 80m

# FLAGS are further flags of each go test, such as '-shuffle=on -count=1'.
FLAGS ?=

# REPEAT=1 runs a failed test of the modules that use servers once more, alone, as CI does.
REPEAT ?=
GOTESTSUM := go run gotest.tools/gotestsum@v1.13.0 --format standard-quiet --hide-summary skipped
REPEATED := $(if $(REPEAT),--rerun-fails=1)

INTEGRATION := go -C internal/integration

.PHONY: test test-all docs-check measure test-docker test-postgres lint fuzz images bench long

# The packages of the root module whose goroutines share memory. Only these have the race detector
# in make test, since it makes builds and tests some times slower. In make test-all every package
# has it.
RACING := . ./adapters/dashboard ./adapters/httpapi ./adapters/memory ./adapters/redis/... ./internal/engine/... \
	./internal/logs ./internal/service ./ports/storekit ./skeintest

# All other packages of the root module, but the one whose tests read the files of the whole
# repository: Go would take a result from its cache although such a file has changed.
PLAIN = $(filter-out $(shell go list $(RACING)) %/internal/repository,$(shell go list ./...))

# The packages of the other modules, and that package. Those with servers always run, because the
# go command's cache doesn't know which servers they found. The longest come first, so that the
# others run beside them.
LONGEST := github.com/skeinq/skein/internal/integration/postgres github.com/skeinq/skein/internal/integration/redis
OTHERS = $(LONGEST) $(filter-out $(LONGEST) $(shell go list ./...),$(shell go list work)) ./internal/repository

# The tests that must pass before each push, from a fresh clone. All three commands run, also after
# a failure. Each ends with its failed tests.
test:
	@scripts/need go git cc redis-server postgres -- valkey-server pgbouncer chromium prometheus curl openssl python3 ruby node
	@scripts/formatted
	@scripts/modules vet ./...
	@failed=0; \
	$(GOTESTSUM) -- -short $(FLAGS) -vet=off -race -timeout 80m $(RACING) || failed=1; \
	$(GOTESTSUM) -- -short $(FLAGS) -vet=off -timeout 80m $(PLAIN) || failed=1; \
	$(GOTESTSUM) $(REPEATED) --packages '$(OTHERS)' -- -short $(FLAGS) $(SERVERS) || failed=1; \
	exit $$failed

# Everything: make test, and then all tests with the race detector and without -short, other
# versions of Postgres, and fuzzing.
test-all: test
	@failed=0; \
	$(GOTESTSUM) -- $(FLAGS) -vet=off -race -timeout 80m -skip '$(YEARS)' ./... || failed=1; \
	$(GOTESTSUM) -- $(FLAGS) -vet=off -timeout 80m -run '$(YEARS)' ./internal/engine || failed=1; \
	$(GOTESTSUM) -- $(FLAGS) $(SERVERS) -race -skip '$(TWISTED)' $(filter-out %/internal/repository,$(OTHERS)) || failed=1; \
	$(GOTESTSUM) -- $(FLAGS) $(SERVERS) -race -run '$(TWISTED)' ./internal/integration/redis ./internal/integration/postgres \
		-rapid.checks=20 || failed=1; \
	exit $$failed
	$(MAKE) test-docker test-postgres fuzz

# Checks that tests get their servers from Docker if nothing else provides them.
test-docker:
	@scripts/need go cc
	SKEIN_TEST_VIA=docker scripts/with-docker $(INTEGRATION) test -race -count=1 -timeout 15m ./testservers

# The tests of the Postgres store on other versions of the server, whose binaries come from npm.
test-postgres:
	@scripts/need go cc npm
	@for version in $(POSTGRES_VERSIONS); do \
		scripts/other-postgres $$version scripts/ran \
			$(INTEGRATION) test $(SERVERS) -run '$(POSTGRES_TESTS)' -skip '$(STANDBYS)' . ./postgres ./kills ./testservers || exit; \
	done

# The tests of the pages, which are part of make test: links and anchors, Go blocks, go and skein
# commands, runbooks.
docs-check:
	@scripts/need go
	go test -count=1 -run '^Test(Links|DeadLinks|Pages|GoOfPages|GoCommands|EveryExported)' ./internal/repository
	go -C cmd/skein test -short -run '^Test(PagesShow|Runbooks|CommandsOfRunbooks|Reference)' .

# Checks that read the code instead of running it.
lint:
	@scripts/need go
	@scripts/formatted
	@scripts/modules vet ./...
	@scripts/modules run $(STATICCHECK) ./...

# FUZZRUNS runs of every fuzz target, some seconds each.
fuzz:
	@scripts/need go
	@scripts/fuzz $(FUZZRUNS)

# How long lists, pages, histories and scripts take on this machine. It prints durations and asserts
# none. It ends with one table. MEASURED selects what to measure:
# make measure MEASURED='ListsOfManyShards$$/pages' JOBS=1000000 SHARDS=1000
measure:
	@scripts/need go cc redis-server postgres
	SKEIN_TEST_LIST_JOBS=$(JOBS) SKEIN_TEST_LIST_SHARDS=$(SHARDS) scripts/measured $(INTEGRATION) test -vet=off -count=1 -p 1 -parallel 1 \
		-timeout 180m -v -run '$(MEASURED)' . ./redis ./postgres

# The pictures docs/images/dashboard-*.png, of skein demo in Chromium.
images:
	@scripts/need go chromium
	@scripts/images

bench:
	@scripts/need go
	@scripts/modules test -run '^$$' -bench . -benchmem ./...

# The large figures, written to the directory long. REPO is the git repository to replay, this one if
# it isn't given.
long:
	@scripts/need go git cc redis-server postgres
	@CHECKS=$(CHECKS) STORIES=$(STORIES) REPO=$(REPO) scripts/long
