package models

import "locklab/sim"

// Designs is the catalogue of lock designs, in its documented order.
func Designs() []*Design {
	return []*Design{
		{Name: "none", Summary: "no lock at all: the baseline that must lose updates", Build: noLock},
		{Name: "redis/blind-del", Summary: "SET NX PX; release is a bare DEL, whoever holds the lock",
			Source:  "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Promise: LeasePromise, Build: redisSystem(redisVariant{identity: RedisString("locked"), blindDel: true})},
		{Name: "redis/lua-release", Summary: "SET NX PX with a unique value; release by a compare-and-delete script",
			Source: "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{})},
		{Name: "redis/watchdog", Summary: "lua-release, renewed every TTL/3 if it is still the owner's; work stops when a renewal is refused",
			Source: "https://redisson.pro/docs/data-and-services/locks-and-synchronizers/",
			Tokens: UniqueTokens, Promise: LeasePromise, Renews: true, Build: redisSystem(redisVariant{renew: &extendIfMine})},
		{Name: "redis/watchdog-blind", Summary: "renewed by a bare PEXPIRE, whoever holds the lock",
			Tokens: UniqueTokens, Promise: LeasePromise, Renews: true, Build: redisSystem(redisVariant{blindRenew: true})},
		{Name: "redis/watchdog-recreate", Summary: "a renewal that finds no lock SETs it again",
			Tokens: UniqueTokens, Promise: LeasePromise, Renews: true, Build: redisSystem(redisVariant{renew: &extendOrRecreate})},
		{Name: "redis/shared-identity", Summary: "the lock's value is the host's name, the same for every process on it",
			Promise: LeasePromise, Build: redisSystem(redisVariant{identity: RedisString("host-a")})},
		{Name: "redis/lua-token", Summary: "the same, and the acquire script also draws a fencing token (INCR)",
			Source: "https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html",
			Tokens: OrderedTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{token: true})},
	}
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
