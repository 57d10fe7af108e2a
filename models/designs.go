package models

import "locklab/sim"

// Designs is the catalogue of lock designs, in its documented order.
func Designs() []*Design {
	return []*Design{
		{Name: "none", Summary: "no lock at all: the baseline that must lose updates", Build: noLock},
		{Name: "redis/blind-del", Summary: "SET NX PX; release is a bare DEL, whoever holds the lock",
			Source:  "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Promise: LeasePromise, Build: redisSystem(redisVariant{blindValue: true, blindDel: true})},
		{Name: "redis/lua-release", Summary: "SET NX PX with a unique value; release by a compare-and-delete script",
			Source: "https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/",
			Tokens: UniqueTokens, Promise: LeasePromise, Build: redisSystem(redisVariant{})},
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
