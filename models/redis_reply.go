package models

import (
	"strconv"
	"strings"

	"locklab/sim"
)

// replyKind is the type of a reply.
type replyKind uint8

const (
	replyNil replyKind = iota
	replyStatus
	replyInt
	replyBulk
	replyError
	replyArray
	replyNilArray // EXEC of a transaction that a WATCH has stopped
)

// RedisReply is a server's answer. An array's items are replies.
type RedisReply struct {
	kind  replyKind
	value RedisValue
	items []RedisReply
}

// Digest implements sim.Payload.
func (r *RedisReply) Digest(d *sim.Digest) {
	d.Word(uint64(r.kind))
	r.value.digest(d)
	for i := range r.items {
		r.items[i].Digest(d)
	}
}

// String implements sim.Payload.
func (r *RedisReply) String() string {
	switch r.kind {
	case replyNil, replyNilArray:
		return "(nil)"
	case replyError:
		return "(error) " + r.value.String()
	case replyArray:
		parts := make([]string, len(r.items))
		for i := range r.items {
			parts[i] = r.items[i].String()
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return short(r.value)
}

// RESP writes the reply as RESP2 has it on the wire, so that the replies of
// different engines can be compared.
func (r *RedisReply) RESP() string {
	text := r.value.String()
	switch r.kind {
	case replyStatus:
		return "+" + text + "\r\n"
	case replyInt:
		return ":" + text + "\r\n"
	case replyBulk:
		return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n"
	case replyError:
		return "-" + text + "\r\n"
	case replyNilArray:
		return "*-1\r\n"
	case replyArray:
		s := "*" + strconv.Itoa(len(r.items)) + "\r\n"
		for i := range r.items {
			s += r.items[i].RESP()
		}
		return s
	}
	return "$-1\r\n"
}

// failed reports whether the reply is an error, with the given code if one is
// named.
func (r *RedisReply) failed(code string) bool {
	return r.kind == replyError && strings.HasPrefix(r.value.text, code)
}

var (
	redisOK     = RedisReply{kind: replyStatus, value: RedisValue{text: "OK"}}
	redisQueued = RedisReply{kind: replyStatus, value: RedisValue{text: "QUEUED"}}
	redisNil    = RedisReply{}
)

// The errors that Redis answers with, as redis-server 7.0.15 words them.
const (
	errWrongType   = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errNotInteger  = "ERR value is not an integer or out of range"
	errOverflow    = "ERR increment or decrement would overflow"
	errSyntax      = "ERR syntax error"
	errNestedMulti = "ERR MULTI calls can not be nested"
	errWatchMulti  = "ERR WATCH inside MULTI is not allowed"
	errExecAlone   = "ERR EXEC without MULTI"
	errDiscard     = "ERR DISCARD without MULTI"
	errExecAbort   = "EXECABORT Transaction discarded because of previous errors."
	errNoScript    = "NOSCRIPT No matching script. Please use EVAL."
	errReadOnly    = "READONLY You can't write against a read only replica."
	errTimeout     = "ERR timeout is negative"
	errWaitReplica = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated."
	errUnblocked   = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"
)

func redisNumber(n int64) RedisReply          { return RedisReply{kind: replyInt, value: RedisInt(n)} }
func redisBulk(v RedisValue) RedisReply       { return RedisReply{kind: replyBulk, value: v} }
func redisList(items []RedisReply) RedisReply { return RedisReply{kind: replyArray, items: items} }
func redisFail(s string) RedisReply           { return RedisReply{kind: replyError, value: RedisValue{text: s}} }

func redisBool(b bool) RedisReply {
	if b {
		return redisNumber(1)
	}
	return redisNumber(0)
}
