# make demo and make test need only Go, make and git; Go fetches the rest.
GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: demo test expectations race lint bench fuzz verify verify-arch browser conformance

# The main job on embedded defaults: Kleppmann's scenario, told and judged.
demo:
	@mkdir -p out
	$(GO) run ./cmd/locklab run kleppmann/gc-pause --design redis/lua-token --resource plain,fenced --html out/gc-pause.html
	@echo
	@echo 'Fencing the writes is not always enough: where the owner reads, computes and writes, an update can still be lost.'
	$(GO) run ./cmd/locklab run kleppmann/fencing-read-modify-write --brief
	@echo
	@echo 'All designs, compared (a quick look; without --quick it takes two minutes):'
	$(GO) run ./cmd/locklab report --quick --out out/report
	@echo
	@echo 'Next: open $(CURDIR)/out/report/index.html and $(CURDIR)/out/gc-pause.html in a browser;'
	@echo '      go run ./cmd/locklab list; go run ./cmd/locklab explain kleppmann/gc-pause'

test:
	$(GO) vet ./...
	$(GO) test ./...

# Every expectation of every story with all of its 100 seeds, and every hash twice.
expectations:
	LOCKLAB_SEEDS=all $(GO) test -timeout 30m -run 'ExpectationsHold|VerifyOfTheLibrary' ./scenarios

# Shorter, as the race detector makes everything ten times slower.
race:
	$(GO) test -race -short ./clock ./network ./checker ./sim ./models ./reports
	$(GO) test -race -short -run 'Verify|Sweep|Shard|Exhaust|Expectations|Seam|Mutants' ./scenarios/...

lint:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# A minute and a half of fuzzing for everything that parses.
fuzz:
	$(GO) test -run '^$$' -fuzz FuzzLoad -fuzztime 20s ./scenarios
	$(GO) test -run '^$$' -fuzz FuzzReadSweep -fuzztime 20s ./scenarios
	$(GO) test -run '^$$' -fuzz FuzzReadHistory -fuzztime 20s ./checker
	for f in FuzzParsePlace FuzzParseMilestone FuzzParseSpan; do $(GO) test -run '^$$' -fuzz $$f -fuzztime 10s ./sim || exit 1; done

# The HTML page in a real headless Chromium (Debian: apt-get install chromium).
browser:
	LOCKLAB_BROWSER=1 $(GO) test -count=1 -run TestBrowser ./reports

# The engines beside a real redis-server (Debian: apt-get install redis-server),
# the PostgreSQL model beside a real server (apt-get install postgresql-15),
# and the library's stories on both engines for more seeds.
conformance:
	LOCKLAB_CONFORMANCE=1 $(GO) test -count=1 -run 'TestConformance|TestEnginesAgree' ./models ./scenarios

verify:
	$(GO) run ./cmd/locklab verify

# The same hashes on amd64, on 386 and on WebAssembly (needs node).
verify-arch:
	cmd/locklab/verify-arch.sh
