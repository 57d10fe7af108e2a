package models

import "errors"

// The engines of Redis servers.
const (
	EngineNative    = "native"    // a fast model
	EngineMiniredis = "miniredis" // github.com/alicebob/miniredis, with a Lua interpreter
)

// Engines are the names of the engines, the default first.
func Engines() []string { return []string{EngineNative, EngineMiniredis} }

// engines is what an environment knows of its servers' engines.
type engines struct {
	minis     []*miniEngine // from run to run
	minisUsed int
	hasRedis  bool   // a Redis server was built
	lacking   string // what one of them needs that only the native engine has
}

func (e *engines) reset() { e.minisUsed, e.hasRedis, e.lacking = 0, false, "" }

// CheckEngine says in one line why the servers that a design has just been
// built with cannot run on the engine that the options name; nil if they can.
func (e *Env) CheckEngine(d *Design) error {
	switch {
	case e.Options.Engine != EngineMiniredis:
		return nil
	case !e.hasRedis:
		return errors.New("engine miniredis is for Redis, and " + d.Name + " has no Redis server; leave --engine out")
	case e.lacking != "":
		return errors.New("engine miniredis has no " + e.lacking + ", and " + d.Name + " is to run with it; leave --engine out")
	}
	return nil
}
