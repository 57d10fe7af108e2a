package models

import (
	"strconv"

	"locklab/sim"
)

// RedisValue is a string as Redis keeps it: a canonical decimal integer is
// kept as a number, anything else as text. Equal strings are equal values.
type RedisValue struct {
	text string
	n    int64
	isN  bool
}

// RedisInt returns the value of an integer's decimal form.
func RedisInt(n int64) RedisValue { return RedisValue{n: n, isN: true} }

// RedisString returns the value of a string.
func RedisString(s string) RedisValue {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return RedisInt(n)
	}
	return RedisValue{text: s}
}

// String returns the string.
func (v RedisValue) String() string {
	if v.isN {
		return strconv.FormatInt(v.n, 10)
	}
	return v.text
}

func (v RedisValue) digest(d *sim.Digest) {
	if v.isN {
		d.Int(v.n)
		return
	}
	d.Text(v.text)
}

// short writes a value so that a line stays readable.
func short(v RedisValue) string {
	if v == (RedisValue{}) {
		return ""
	}
	s := v.String()
	if len(s) > 8 {
		return s[:4] + ".."
	}
	return s
}
