package models

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// realRedis is a redis-server of the test's own.
type realRedis struct {
	client *redis.Client
	conns  []*redis.Conn // of the sessions
}

// startRealRedis starts a redis-server on a free port of this machine, in a
// directory of its own, and stops it at the end. Without LOCKLAB_CONFORMANCE=1
// the test is skipped, and without a redis-server too, unless CI is set.
func startRealRedis(t *testing.T) *realRedis {
	t.Helper()
	if os.Getenv("LOCKLAB_CONFORMANCE") != "1" {
		t.Skip("LOCKLAB_CONFORMANCE=1 compares with a real redis-server (make conformance)")
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no redis-server; install it, on Debian by: apt-get install redis-server")
		}
		t.Skip("no redis-server; install it, on Debian by: apt-get install redis-server")
	}
	for range 5 { // somebody else may take the port first
		if r := tryRealRedis(t, program); r != nil {
			return r
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

func tryRealRedis(t *testing.T, program string) *realRedis {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	server := exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "no", "--daemonize", "no")
	require.NoError(t, server.Start())
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true, MaxRetries: -1, PoolSize: 10})
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		if pid, err := client.Info(context.Background(), "server").Result(); err == nil && strings.Contains(pid, fmt.Sprintf("process_id:%d\r", server.Process.Pid)) {
			t.Cleanup(func() {
				_ = client.Close()
				_ = server.Process.Kill()
				_ = server.Wait()
			})
			return &realRedis{client: client}
		}
	}
	_ = client.Close()
	_ = server.Process.Kill()
	_ = server.Wait()
	return nil
}

// begin makes the server empty, with new sessions.
func (r *realRedis) begin(t require.TestingT) {
	ctx := context.Background()
	for _, c := range r.conns { // they go back to the pool
		_ = c.Do(ctx, "DISCARD").Err()
		require.NoError(t, c.Do(ctx, "UNWATCH").Err())
		require.NoError(t, c.Close())
	}
	r.conns = r.conns[:0]
	require.NoError(t, r.client.FlushAll(ctx).Err())
	require.NoError(t, r.client.ScriptFlush(ctx).Err())
}

// do sends a command in a session and returns the reply as it came.
func (r *realRedis) do(t require.TestingT, session int, c *RedisCommand) string {
	ctx := context.Background()
	for len(r.conns) <= session {
		r.conns = append(r.conns, r.client.Conn())
	}
	var args []any
	for _, a := range c.Args() {
		args = append(args, a)
	}
	cmd := redis.NewRawCmd(ctx, args...)
	_ = r.conns[session].Process(ctx, cmd)
	raw, err := cmd.Bytes()
	if err != nil && raw == nil {
		return "-" + err.Error() + "\r\n"
	}
	reply, err := ReadRedisReply(bufio.NewReader(bytes.NewReader(raw)))
	require.NoError(t, err, "%q", raw)
	return reply.RESP()
}

// Conformance: whatever three sessions ask, a real server answers as both
// engines do. Time passes as it does, so that nothing may expire and what is
// left of a time to live is not asked for.
func TestConformanceRedisCommands(t *testing.T) {
	real := startRealRedis(t)
	rapid.Check(t, func(rt *rapid.T) {
		real.begin(rt)
		engines := []*RedisEngine{}
		for _, name := range Engines() {
			e, err := NewRedisEngine(name)
			require.NoError(rt, err)
			engines = append(engines, e)
		}
		var story []string
		for range rapid.IntRange(1, 60).Draw(rt, "length") {
			session, line := rapid.IntRange(0, 2).Draw(rt, "session"), unhurried(drawEngineCommand(rt))
			story = append(story, fmt.Sprintf("%d: %s", session, line))
			c := parseRedis(t, line)
			want := real.do(rt, session, &c)
			for i, e := range engines {
				if got := e.Do(session, wallAt(0), c); got.RESP() != want {
					rt.Fatalf("%s\nredis-server %q\n%s %q", strings.Join(story, "\n"), want, Engines()[i], got.RESP())
				}
			}
		}
	})
}

// unhurried makes times to live too long to run out, and asks for seconds
// where milliseconds would be seen to pass.
func unhurried(line string) string {
	words := strings.Fields(line)
	for i, w := range words {
		switch {
		case i > 0 && words[i-1] == "PX" && w[0] != '-' && words[0] == "SET":
			words[i] = w + "00000"
		case i > 0 && words[i-1] == "EX":
			words[i] = w + "0000"
		}
	}
	switch {
	case words[0] == "PTTL":
		words[0] = "EXISTS"
	case words[0] == "TTL":
		words[0] = "EXISTS"
	case (words[0] == "PEXPIRE" || words[0] == "EXPIRE") && words[2][0] != '-' && words[2] != "0":
		words[2] += "00000"
	case strings.HasPrefix(words[0], "EVAL") && len(words) > 4:
		words[4] += "00000"
	}
	return strings.Join(words, " ")
}

// Conformance: the transcripts, those with a clock that only goes on, in real
// time. A step that ends at the last millisecond of a time to live cannot be
// hit; nor can what is left be told.
func TestConformanceRedisTranscripts(t *testing.T) {
	real := startRealRedis(t)
	for _, c := range redisTranscripts {
		t.Run(c.name, func(t *testing.T) {
			real.begin(t)
			for i, line := range c.lines {
				s := parseStep(t, line)
				if s.wait < 0 || s.wait > 600 || s.wait == 1 || s.wait == 100 {
					t.Skip("its clock steps, or its moment cannot be hit")
				}
				if s.wait > 0 {
					time.Sleep(time.Duration(s.wait+20) * time.Millisecond)
				}
				command := parseRedis(t, s.command)
				got := real.do(t, s.session, &command)
				if command.Verb == RedisPTTL || command.Verb == RedisTTL {
					continue
				}
				reply, err := ReadRedisReply(bufio.NewReader(strings.NewReader(got)))
				require.NoError(t, err)
				require.Equal(t, s.want, plain(&reply), "line %d: %s", i+1, line)
			}
		})
	}
}
