package models

import "locklab/sim"

// Designs is the catalogue of lock designs, in its documented order.
func Designs() []*Design {
	return []*Design{
		{Name: "none", Summary: "no lock at all: the baseline that must lose updates", Build: noLock},
		{Name: "redis/setnx-no-ttl", Summary: "SETNX, DEL: a crashed holder blocks everybody for ever",
			Source:  "https://redis.io/docs/latest/commands/setnx/",
			Promise: SessionPromise, Build: redisSystem(redisVariant{grasp: graspSetNX, letGo: letGoDel, identity: RedisString("locked")})},
		{Name: "redis/setnx-expire", Summary: "SETNX, then EXPIRE as a second command; released by a script",
			Source: "https://redis.io/docs/latest/commands/setnx/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{grasp: graspExpire})},
		{Name: "redis/blind-del", Summary: "SET NX PX; release is a bare DEL, whoever holds the lock",
			Source:  "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Promise: LeasePromise, Build: redisSystem(redisVariant{identity: RedisString("locked"), letGo: letGoDel})},
		{Name: "redis/get-del", Summary: "release is GET, compare, DEL in three steps",
			Source: "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{letGo: letGoGetDel})},
		{Name: "redis/lua-release", Summary: "SET NX PX with a unique value; release by a compare-and-delete script",
			Source: "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{})},
		{Name: "redis/watch-release", Summary: "the same by WATCH, GET, MULTI, DEL, EXEC instead of a script",
			Source: "https://redis.io/docs/latest/develop/using-commands/transactions/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{letGo: letGoWatch})},
		{Name: "redis/watchdog", Summary: "lua-release, renewed every TTL/3 if it is still the owner's; work stops when a renewal is refused",
			Source: "https://redisson.pro/docs/data-and-services/locks-and-synchronizers/",
			Tokens: UniqueTokens, Promise: LeasePromise, Renews: true, Build: redisSystem(redisVariant{renew: &extendIfMine})},
		{Name: "redis/watchdog-blind", Summary: "renewed by a bare PEXPIRE, whoever holds the lock",
			Tokens: UniqueTokens, Promise: LeasePromise, Renews: true, Build: redisSystem(redisVariant{blindRenew: true})},
		{Name: "redis/watchdog-recreate", Summary: "a renewal that finds no lock SETs it again",
			Tokens: UniqueTokens, Promise: LeasePromise, Renews: true, Build: redisSystem(redisVariant{renew: &extendOrRecreate})},
		{Name: "redis/shared-identity", Summary: "the lock's value is the host's name, the same for every process on it",
			Promise: LeasePromise, Build: redisSystem(redisVariant{identity: RedisString("host-a")})},
		{Name: "redis/incr-token", Summary: "SET NX PX, then INCR as a second command for a fencing token",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{grasp: graspIncr})},
		{Name: "redis/lua-token", Summary: "lua-release, and the acquire script also draws a fencing token (INCR)",
			Source: "https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{grasp: graspScript})},
		{Name: "redis/leader", Summary: "leader election: SET NX EX; GET, compare and EXPIRE as a heartbeat; GET, compare and DEL to resign",
			Source:  "https://github.com/pierreinglebert/redis-leader/blob/master/index.js",
			Promise: LeasePromise, Renews: true, Build: redisLeaderSystem},
		{Name: "redis-replica/lua-release", Summary: "lua-release on a primary with asynchronous replicas and a monitor that fails over",
			Source: "https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisReplicaSystem(redisVariant{})},
		{Name: "redis-replica/wait", Summary: "the same, and an acquire counts only when a replica has acknowledged it (WAIT 1)",
			Source: "https://redis.io/docs/latest/commands/wait/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisReplicaSystem(redisVariant{waits: true})},
		{Name: "redis-replica/lua-token", Summary: "lua-token on a primary with replicas: a failover can take the counter back",
			Source: "https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: redisReplicaSystem(redisVariant{grasp: graspScript})},
		{Name: "redis/semaphore-keys", Summary: "a semaphore: as many locks as permits, each SET NX PX; a client tries one key after the other",
			Source: "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Tokens: UniqueTokens, Promise: LeasePromise, Capacity: permits, Build: semaphoreKeys},
		{Name: "redis/semaphore-zset", Summary: "a semaphore in a sorted set: the first K have a permit, in the order of the clients' clocks",
			Source: "https://redis.io/ebook/part-2-core-concepts/chapter-6-application-components-in-redis/6-3-counting-semaphores/6-3-1-building-a-basic-counting-semaphore/",
			Tokens: UniqueTokens, Promise: LeasePromise, Capacity: permits, Build: semaphoreZSet(false)},
		{Name: "redis/semaphore-zset-server-time", Summary: "the same in one script, by the server's clock",
			Source: "https://redis.io/docs/latest/commands/time/",
			Tokens: UniqueTokens, Promise: LeasePromise, Capacity: permits, Build: semaphoreZSet(true)},
		{Name: "redis/quota", Summary: "a quota for each window: INCR, then EXPIRE as a second command",
			Source:   redisIncrManual,
			Capacity: permits, Quota: true, Build: quotaSystem(false)},
		{Name: "redis/quota-script", Summary: "the same in one script",
			Source:   redisIncrManual,
			Capacity: permits, Quota: true, Build: quotaSystem(true)},
		{Name: "redis/barrier", Summary: "a barrier before every section: INCR, and wait until the counter says that all have come",
			Source:  redisBarrierArticle,
			Barrier: true, Build: barrierSystem(false)},
		{Name: "redis/barrier-names", Summary: "the same with a set of names for each section, in which nobody counts twice",
			Source:  redisBarrierArticle,
			Barrier: true, Build: barrierSystem(true)},
		redlockDesign("redlock", "a majority of N independent Redis servers; what is left of the lease is measured when the answers are in", redlockVariant{}),
		redlockDesign("redlock/no-validity-check", "trusts the majority, however long the answers took", redlockVariant{trusting: true}),
		redlockDesign("redlock/wall-clock", "measures how long the answers took by the wall clock", redlockVariant{wallClock: true}),
		extending(redlockDesign("redlock/extend", "extends the lease on a majority every TTL/3, at most three times", redlockVariant{})),
		redlockDesign("redlock/fsync-always", "every node writes and fsyncs each command before it answers, and so remembers", redlockVariant{restart: remembers}),
		redlockDesign("redlock/delayed-restart", "a restarted node stays away until every lease that it may have forgotten has run out", redlockVariant{restart: staysAway}),
		{Name: "local-mutex", Summary: "a mutex inside each machine: right for one machine (clients_per_node), wrong for two",
			Source: "https://man7.org/linux/man-pages/man2/flock.2.html", Build: localMutexSystem},
		{Name: "postgres/advisory-session", Summary: "pg_try_advisory_lock on a connection of its own; unlocked on the same",
			Source:  pgAdvisoryManual,
			Promise: SessionPromise, Build: advisorySystem(advisoryVariant{})},
		{Name: "postgres/advisory-session-monitored", Summary: "the same, and a monitor polls the connection and stops the work when it is lost",
			Source:  "https://github.com/madelson/DistributedLock/blob/master/docs/DistributedLock.Postgres.md",
			Promise: SessionPromise, Renews: true, Build: advisorySystem(advisoryVariant{})},
		{Name: "postgres/advisory-session-reconnect", Summary: "the same, but the driver reconnects by itself, and the work goes on without the lock",
			Source:  pgAdvisoryManual,
			Promise: SessionPromise, Renews: true, Build: advisorySystem(advisoryVariant{reconnects: true})},
		{Name: "postgres/advisory-session-pgbouncer", Summary: "advisory-session through a pooler in transaction mode: two clients may share one session",
			Source:  "https://www.pgbouncer.org/features.html",
			Promise: SessionPromise, Build: advisorySystem(advisoryVariant{pooled: true})},
		{Name: "postgres/advisory-xact", Summary: "pg_try_advisory_xact_lock; the transaction's end gives it back",
			Source:  pgAdvisoryManual,
			Promise: SessionPromise, Hosts: inTransaction, Build: advisoryXactSystem},
		{Name: "postgres/lease-table", Summary: "a row with an owner and an expiry, taken by INSERT ... ON CONFLICT; the database's clock",
			Source: pgInsertManual,
			Tokens: UniqueTokens, Promise: LeasePromise, Hosts: inTransaction, Build: leaseSystem(leaseVariant{})},
		{Name: "postgres/lease-table-client-clock", Summary: "the same, but expiry goes by the clients' clocks",
			Source: pgInsertManual,
			Tokens: UniqueTokens, Promise: LeasePromise, Hosts: inTransaction, Build: leaseSystem(leaseVariant{clientClock: true})},
		{Name: "postgres/lease-table-token", Summary: "lease-table, and every grant counts a token up in the same statement",
			Source: pgInsertManual,
			Tokens: OrderedTokens, Promise: LeasePromise, Hosts: inTransaction, Build: leaseSystem(leaseVariant{token: true})},
		{Name: "postgres/unique-index", Summary: "no lock: every write has a number, and a unique index lets each number happen once",
			Source: "https://www.postgresql.org/docs/15/index-unique-checks.html",
			Own:    inTransaction, Build: attemptSystem(pgLedger, pgLedger, openUniqueIndex)},
		{Name: "postgres/optimistic", Summary: "no lock: a version column; an UPDATE that finds another version begins anew",
			Source: "https://www.postgresql.org/docs/15/transaction-iso.html#XACT-READ-COMMITTED",
			Own:    inTransaction, Build: attemptSystem(pgData, pgEntries, openOptimistic, pgDataRow())},
		{Name: "postgres/serializable", Summary: "no lock: SERIALIZABLE; a transaction that gets 40001 begins anew",
			Source: "https://www.postgresql.org/docs/15/transaction-iso.html#XACT-SERIALIZABLE",
			Own:    inTransaction, Build: attemptSystem(pgData, pgEntries, openSerializable, pgDataRow())},
		{Name: "postgres/skip-locked", Summary: "no lock: a queue; a job's claim is held in a transaction (FOR UPDATE SKIP LOCKED)",
			Source: "https://www.postgresql.org/docs/15/sql-select.html#SQL-FOR-UPDATE-SHARE",
			Jobs:   true, Hosts: inTransaction, Build: queueSystem(false)},
		{Name: "postgres/skip-locked-reaper", Summary: "no lock: a queue; a claim is a status, and a reaper gives jobs back after the ttl",
			Source: "https://www.postgresql.org/docs/15/sql-select.html#SQL-FOR-UPDATE-SHARE",
			Jobs:   true, Hosts: inTransaction, Build: queueSystem(true)},
		{Name: "postgres/idempotency-key", Summary: "no lock: a request has a key, which is inserted with its effect; repeating it is safe",
			Source: "https://stripe.com/blog/idempotency",
			Jobs:   true, Own: inTransaction, Build: idempotencySystem},
		{Name: "postgres/leader", Summary: "leader election: a held advisory lock; asking for it again on the same connection is the heartbeat",
			Source:  "https://www.ramitmittal.com/blog/leader-election-advisory-locks/",
			Promise: SessionPromise, Renews: true, Build: postgresLeaderSystem},
		{Name: "etcd/lock", Summary: "a key of a kept-alive lease, queued by create revision; the owner checks that its key is still there",
			Source: "https://github.com/etcd-io/etcd/blob/main/client/v3/concurrency/mutex.go",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: etcdSystem(etcdVariant{})},
		{Name: "etcd/lock-no-recheck", Summary: "the same without the check, as it was until 2020",
			Source: "https://github.com/etcd-io/etcd/pull/11408",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: etcdSystem(etcdVariant{noRecheck: true})},
		{Name: "etcd/txn-guard", Summary: "the data lives in etcd too; every access compares the lock key's create revision in its transaction",
			Source: "https://etcd.io/docs/v3.6/learning/why/",
			Tokens: OrderedTokens, Promise: LeasePromise, Own: inTransaction, Build: etcdSystem(etcdVariant{guard: true})},
		{Name: "etcd/leader", Summary: "leader election: etcd's Election, a key of a kept-alive lease; campaign without a re-check, resign by comparing",
			Source: "https://github.com/etcd-io/etcd/blob/main/client/v3/concurrency/election.go",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: etcdLeaderSystem},
		{Name: "zookeeper/lock", Summary: "an ephemeral sequential node; the lowest owns the lock, each other watches the one before its own",
			Source: "https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: zooSystem(zooVariant{})},
		{Name: "zookeeper/lock-herd", Summary: "the same, but everybody watches the owner's node",
			Source: "https://zookeeper.apache.org/doc/current/recipes.html#sc_recipes_Locks",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: zooSystem(zooVariant{herd: true})},
		{Name: "k8s/lease", Summary: "leader election: client-go's, a Lease object that is alive as long as its readers see it change",
			Source:  "https://github.com/kubernetes/client-go/blob/master/tools/leaderelection/leaderelection.go",
			Promise: LeasePromise, Drift: k8sDrift, Build: k8sSystem},
		{Name: "queue/partitioned", Summary: "no lock: one consumer at a time has all messages of a key; late work of the former one is accepted",
			Source:  "https://kafka.apache.org/documentation/#consumerconfigs_max.poll.interval.ms",
			Promise: LeasePromise, Hosts: inTransaction, Build: partitionedSystem(false)},
		{Name: "queue/partitioned-generation", Summary: "the same, and work carries the number of its delivery; the broker refuses older ones",
			Source: "https://kafka.apache.org/documentation/#consumerconfigs_max.poll.interval.ms",
			Tokens: OrderedTokens, Promise: LeasePromise, Hosts: inTransaction, Build: partitionedSystem(true)},
	}
}

// inTransaction is the resource in the database of a design.
const inTransaction = "same-transaction"

const (
	redisIncrManual     = "https://redis.io/docs/latest/commands/incr/"
	redisBarrierArticle = "https://oneuptime.com/blog/post/2026-01-21-redis-distributed-coordination/view"
	pgAdvisoryManual    = "https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS"
	pgInsertManual      = "https://www.postgresql.org/docs/15/sql-insert.html#SQL-ON-CONFLICT"
)

// redlockDesign is a design that asks several independent Redis servers.
func redlockDesign(name, summary string, v redlockVariant) *Design {
	return &Design{Name: name, Summary: summary, Source: "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
		Tokens: UniqueTokens, Promise: LeasePromise, Drift: redlockDrift, Build: redlockSystem(v)}
}

// extending makes a Redlock extend its leases. The article asks for a limit
// and leaves the number open; Pottery, which follows it closely, has three.
func extending(d *Design) *Design {
	d.Renews, d.RenewMax = true, 3
	return d
}

// noLock is the design that hands the lock to whoever asks.
func noLock(*Env) System {
	return System{Lock: func(*sim.Process) Lock { return nobodysLock{} }}
}

// nobodysLock is always granted and excludes nobody.
type nobodysLock struct{}

// Acquire implements Lock.
func (nobodysLock) Acquire(*sim.Task) (Grant, error) { return Grant{}, nil }

// Renew implements Lock.
func (nobodysLock) Renew(*sim.Task, *Grant) error { return nil }

// Release implements Lock.
func (nobodysLock) Release(*sim.Task, *Grant) error { return nil }
