package models

import "locklab/sim"

// OpKind is what an operation of a history does. The numbers are those of the
// checker's kinds.
type OpKind uint8

// The kinds of operations.
const (
	OpAcquire OpKind = iota + 1
	OpRenew
	OpEnter
	OpRead
	OpWrite
	OpAppend
	OpRelease
)

// Recorder hears what clients do and what servers decide: it writes the
// history. Programs tell it and never ask it anything.
type Recorder interface {
	// Invoke begins an operation under a tenure (the number of its acquire; 0
	// for an acquire itself) and returns its number, which the task's messages
	// carry from now on.
	Invoke(t *sim.Task, kind OpKind, tenure int32, value, token int64) int32
	// Try says that an acquire, which may try many times, begins a try.
	Try(t *sim.Task, op int32)
	// Return ends an operation. A nil error is success; sim.ErrUnknown leaves
	// the outcome unknown; any other error is a refusal. seen is what a read saw.
	Return(t *sim.Task, op int32, err error, seen int64)
	// Acquired ends an acquire with success: from now on the client believes.
	// token is the grant's fencing token, 0 for none.
	Acquired(t *sim.Task, op int32, token int64)
	// LearnsLoss says that the client has just learned that its lock is gone.
	LearnsLoss(t *sim.Task, tenure int32)
	// Rests says that an acquire's lease is an older one: how long it is
	// promised to last counts from when operation on, the last to be
	// acknowledged, was sent.
	Rests(op, on int32)
	// Applied says that a replicated lock service has just carried out an
	// operation, or (0) has done something of its own, such as ending a lease.
	Applied(op int32)
	// SessionLost says that a server has just ended the session that carried a
	// grant, because the network told it that the client is gone.
	SessionLost(tenure int32)
	// Decided says what a resource made of an operation, at the moment at
	// which it took effect. seen is what a read found.
	Decided(op int32, accepted bool, seen int64)
}
