package checker_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "locklab/checker"
)

const header = `{"history":1,"clients":["A","B"],"promise":"lease","ttl_ns":10,"end_ns":99}` + "\n"

// What is written is read back unchanged, byte for byte and value for value.
func TestHistoryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		if rapid.Bool().Draw(t, "outside") {
			fromOutside(h)
		}
		h.Tokens, h.Capacity = rapid.Bool().Draw(t, "tokens"), rapid.IntRange(0, 3).Draw(t, "capacity")
		h.Quota, h.Parties = rapid.Bool().Draw(t, "quota"), rapid.IntRange(0, 3).Draw(t, "parties")
		if rapid.Bool().Draw(t, "faults never end") {
			h.FaultsOver = Never
		}
		var first, second bytes.Buffer
		require.NoError(t, WriteHistory(&first, h))
		got, errs := ReadHistory(bytes.NewReader(first.Bytes()), "h.jsonl")
		require.Empty(t, errs)
		require.Equal(t, h, got)
		require.NoError(t, WriteHistory(&second, got))
		require.Equal(t, first.String(), second.String())
	})
}

func TestHistoryLooksLikeThis(t *testing.T) {
	h := story(`lease 10; tokens; final 1
		client-1 acquire 1..1.002..1.003 token=33
		client-1 write 2..5..? =1
		client-1 release 6..?`)
	var out bytes.Buffer
	require.NoError(t, WriteHistory(&out, h))
	require.Equal(t, strings.TrimLeft(`
{"history":1,"clients":["client-1"],"promise":"lease","ttl_ns":10000000000,"knows_grants":true,"omniscient":true,"tokens":true,"data":"register","final":[1],"faults_over":0,"end_ns":100000000000}
{"op":"acquire","id":1,"client":"client-1","section":1,"tenure":1,"invoke":[1000000000,10],"return":[1003000000,12],"outcome":"ok","effect":[1002000000,11],"token":33,"granted":[1002000000,11],"believes_until":[6000000000,30],"loss":"released"}
{"op":"write","id":2,"client":"client-1","section":1,"tenure":1,"invoke":[2000000000,20],"outcome":"unknown","effect":[5000000000,21],"decision":"accepted","applied":1,"token":33,"value":1}
{"op":"release","id":3,"client":"client-1","section":1,"tenure":1,"invoke":[6000000000,30],"outcome":"unknown","token":33}
`, "\n"), out.String())
}

// A renewal that took the lock anew tells how that lock ended, and nothing
// else of a grant's life.
func TestHistoryOfARecreatedLock(t *testing.T) {
	line := `{"op":"renew","id":2,"client":"A","tenure":1,"invoke":5,"return":7,"outcome":"ok","effect":6,"recreated":true,"ended":9,"end":"released"}` + "\n"
	acquire := `{"op":"acquire","id":1,"client":"A","tenure":1,"invoke":1,"return":2,"outcome":"ok","granted":2,"ended":4,"end":"expired","believes_until":null}` + "\n"
	h, errs := ReadHistory(strings.NewReader(header+acquire+line), "h")
	require.Empty(t, errs)
	require.True(t, h.Ops[1].Recreated)
	require.Equal(t, Instant{At: 9}, h.Ops[1].Ended)
	require.Equal(t, EndReleased, h.Ops[1].End)
	require.Equal(t, Instant{At: 4}, h.Ops[0].Ended, "the tenure had ended before")
	var out bytes.Buffer
	require.NoError(t, WriteHistory(&out, h))
	require.True(t, strings.HasSuffix(out.String(), acquire+line), out.String())
	_, errs = ReadHistory(strings.NewReader(header+acquire+strings.Replace(line, `"recreated":true,`, "", 1)), "h")
	require.Len(t, errs, 2, "without it neither ended nor end is a renewal's")
}

// The fewest keys that a history by hand needs.
func TestHandwrittenHistory(t *testing.T) {
	h, errs := ReadHistory(strings.NewReader(header+`
{"op":"acquire","client":"A","invoke":1,"return":2,"outcome":"ok"}
{"op":"acquire","client":"B","invoke":5,"return":6,"outcome":"ok","believes_until":null}
{"op":"release","client":"A","tenure":1,"invoke":4}`), "h")
	require.Empty(t, errs)
	require.Equal(t, Instant{At: 4}, h.Ops[0].BelievesUntil, "taken from the release")
	require.Equal(t, LossReleased, h.Ops[0].Loss)
	require.EqualValues(t, 1, h.Ops[0].Tenure)
	require.EqualValues(t, 3, h.Ops[1].ID, "put in order of invocation")
	require.Equal(t, Never, h.Ops[2].BelievesUntil, "null is never")
	require.Equal(t, "| kept safe", summary(Check(h)))
}

func TestMalformedHistories(t *testing.T) {
	ok := `{"op":"acquire","client":"A","invoke":1}` + "\n"
	for _, c := range []struct {
		name, text, want string
		ops              int // kept; -1 for no history at all
	}{
		{"empty", "", `h:1: no header`, -1},
		{"no header", ok, `h:1: field history: missing: the first line must be the header`, -1},
		{"not JSON", "hello\n", `h:1: want a JSON object, got "hello"`, -1},
		{"another version", `{"history":2,"clients":[]}`, `h:1: field history: version 2 is not known, want 1`, -1},
		{"no clients", `{"history":1}`, `h:1: field clients: missing`, -1},
		{"the same client twice", `{"history":1,"clients":["A","A"]}`, `h:1: field clients: "A" stands there twice`, -1},
		{"unknown key in the header", `{"history":1,"clients":["A"],"ttl":3}`, `h:1: field ttl: unknown here`, -1},
		{"a register of two values", `{"history":1,"clients":[],"final":[1,2]}`, `h:1: field final: a register has one value, got 2`, -1},
		{"negative duration", `{"history":1,"clients":[],"ttl_ns":-1}`, `h:1: field ttl_ns: -1 is out of range`, -1},
		{"unknown key", header + ok + `{"op":"acquire","client":"A","invoke":1,"when":3}`, `h:3: field when: unknown here`, 1},
		{"a tenure's key on a write", header + ok + `{"op":"write","client":"A","invoke":1,"granted":3}`, `h:3: field granted: unknown here`, 1},
		{"unknown client", header + `{"op":"acquire","client":"C","invoke":1}` + "\n" + ok, `h:2: field client: "C" is not among the clients of the header`, 1},
		{"unknown word", header + `{"op":"grab","client":"A","invoke":1}`, `h:2: field op: unknown word "grab", want one of`, 0},
		{"missing", header + `{"op":"read","client":"A"}`, `h:2: field invoke: missing`, 0},
		{"a text for a number", header + `{"op":"write","client":"A","invoke":1,"value":"x"}`, `h:2: field value: cannot read "\"x\"" as a whole number of 64 bits`, 0},
		{"a fraction", header + `{"op":"write","client":"A","invoke":1,"value":1.5}`, `h:2: field value`, 0},
		{"an instant of three", header + `{"op":"acquire","client":"A","invoke":[1,2,3]}`, `h:2: field invoke: want ns, [ns, step] or null`, 0},
		{"an ID twice", header + ok + `{"op":"acquire","client":"A","invoke":1,"id":1}`, `h:3: field id: 1 stands on an earlier line too`, 1},
		{"too large", header + `{"op":"read","client":"A","invoke":1,"section":3000000000}`, `h:2: field section: 3000000000 is out of range`, 0},
		{"no such tenure", header + `{"op":"read","client":"A","invoke":1,"tenure":9}`, `h:2: field tenure: there is no acquire with the id 9`, 1},
		{"truncated", header + ok + `{"op":"acquire","cli`, `h:3: the file ends within this line; it is left out`, 1},
		{"a line that is no object", header + "[1]\n" + ok, `h:2: want a JSON object, got "[1]"`, 1},
		{"null", header + "null\n" + ok, `h:2: want a JSON object, got "null"`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, errs := ReadHistory(strings.NewReader(c.text), "h")
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], c.want)
			if c.ops < 0 {
				require.Nil(t, h)
				return
			}
			require.Len(t, h.Ops, c.ops)
		})
	}
}

func TestWriteHistoryRefusesWhatCannotBeRead(t *testing.T) {
	var out bytes.Buffer
	require.ErrorContains(t, WriteHistory(&out, &History{Clients: []string{"A", "A"}}), `two clients are called "A"`)
	require.ErrorContains(t, WriteHistory(&out, &History{Ops: []Op{{ID: 7, Kind: Read}}}), "operation 7: client 0 does not exist")
}

// Whatever the input: no panic, and what is read can be judged, written and
// read again.
func FuzzReadHistory(f *testing.F) {
	for _, c := range findingCases {
		var out bytes.Buffer
		if WriteHistory(&out, story(c.story)) == nil {
			f.Add(out.Bytes())
		}
	}
	f.Add([]byte(header + `{"op":"acquire","client":"A","invoke":[1,2],"return":null}` + "\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, errs := ReadHistory(bytes.NewReader(data), "fuzz")
		if h == nil {
			require.NotEmpty(t, errs)
			return
		}
		r := Check(h)
		r.Explain(h)
		var out bytes.Buffer
		require.NoError(t, WriteHistory(&out, h))
		again, _ := ReadHistory(&out, "again")
		require.Equal(t, h, again)
	})
}
