package models

import (
	"errors"
	"fmt"

	"locklab/sim"
)

// errNoPrimary: nobody could be found who is the primary. Nothing was sent.
var errNoPrimary = errors.New("no primary is known")

// errUnsent is errNoPrimary for an operation whose outcome is then unknown to
// its caller: a lock that could not be released may yet live.
var errUnsent = fmt.Errorf("%w: %w", errNoPrimary, sim.ErrUnknown)

// redisLink is a client's way to a Redis server: the one that it is given or,
// with a group, whoever is the primary.
type redisLink struct {
	env     *Env
	server  *sim.Process
	group   *redisGroup
	monitor link
	conn    *sim.Conn
}

// open returns the connection, a new one if the last was abandoned or reset.
// As long as it lives nobody asks who is the primary now.
func (l *redisLink) open(t *sim.Task) (*sim.Conn, error) {
	switch {
	case l.conn != nil && l.conn.Open():
		return l.conn, nil
	case l.group == nil:
		l.conn = t.Dial(l.server)
		return l.conn, nil
	}
	return l.discover(t)
}

// discover finds the primary as a client with Sentinel support does (redis.io,
// "Redis client spec for Sentinel"): ask the monitor, connect, and ask the
// server for its role, since the monitor may not know yet.
func (l *redisLink) discover(t *sim.Task) (*sim.Conn, error) {
	ask := l.env.commands.Get()
	ask.Verb, ask.Key = RedisGetPrimary, redisLockKey
	answer, err := l.monitor.call(t, l.env, ask)
	if err != nil {
		return nil, errNoPrimary
	}
	server := l.group.named(answer.(*RedisReply).value.text)
	if server == nil {
		return nil, errNoPrimary
	}
	conn := t.Dial(server)
	role := l.env.commands.Get()
	role.Verb = RedisRole
	answer, err = t.Call(conn, role, l.env.Options.CallTimeout)
	if err != nil {
		return nil, errNoPrimary
	}
	if r := answer.(*RedisReply); r.kind != replyArray || r.items[0].value.text != "master" {
		t.Hangup(conn)
		return nil, errNoPrimary
	}
	l.conn = conn
	return conn, nil
}

// named finds a server by its name, nil if there is none.
func (g *redisGroup) named(name string) *sim.Process {
	for _, s := range g.servers {
		if s.proc.Name() == name {
			return s.proc
		}
	}
	return nil
}

// do sends one command, on whatever connection there is.
func (l *redisLink) do(t *sim.Task, c *RedisCommand) (*RedisReply, error) {
	for {
		conn, err := l.open(t)
		if err != nil {
			return nil, err
		}
		r, err := l.on(t, conn, c)
		if !errors.Is(err, sim.ErrClosed) { // closed while this client was paused: nothing was sent
			return r, err
		}
	}
}

// on sends one command on a certain connection: what was said on it before
// still counts. An error reply is a fault in the model, not an outcome, but
// for those of a server that is no primary any more, and for what a key holds
// that somebody else has written.
func (l *redisLink) on(t *sim.Task, conn *sim.Conn, c *RedisCommand) (*RedisReply, error) {
	body := l.env.commands.Get()
	*body = *c
	p, err := t.Call(conn, body, l.env.Options.CallTimeout)
	if err != nil {
		return nil, err
	}
	return l.read(t, conn, body, p.(*RedisReply))
}

// read makes of a reply what its client does.
func (l *redisLink) read(t *sim.Task, conn *sim.Conn, body *RedisCommand, r *RedisReply) (*RedisReply, error) {
	switch {
	case r.failed("READONLY"), r.failed("UNBLOCKED"):
		t.Hangup(conn)
		return nil, errNoPrimary
	case r.failed("") && !r.failed("WRONGTYPE") && !r.failed(errNotInteger) && !r.failed(errOverflow):
		panic("redis: " + body.String() + ": " + r.String())
	}
	return r, nil
}

// pipeline sends commands without waiting for the answers in between, and
// returns the last one's answer.
func (l *redisLink) pipeline(t *sim.Task, commands ...RedisCommand) (*RedisReply, error) {
	for {
		conn, err := l.open(t)
		if err != nil {
			return nil, err
		}
		r, err := l.allOn(t, conn, commands)
		if !errors.Is(err, sim.ErrClosed) { // else the last of them was not sent
			return r, err
		}
	}
}

func (l *redisLink) allOn(t *sim.Task, conn *sim.Conn, commands []RedisCommand) (last *RedisReply, err error) {
	calls, bodies := make([]*sim.Call, len(commands)), make([]*RedisCommand, len(commands))
	for i := range commands {
		bodies[i] = l.env.commands.Get()
		*bodies[i] = commands[i]
		calls[i] = t.Start(conn, bodies[i], l.env.Options.CallTimeout)
	}
	for i, call := range calls {
		p, err := t.Await(call)
		if err != nil {
			return nil, err
		}
		if last, err = l.read(t, conn, bodies[i], p.(*RedisReply)); err != nil {
			return nil, err
		}
	}
	return last, nil
}
