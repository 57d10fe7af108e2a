package checker_test

import (
	"fmt"
	"os"
	"strings"

	"locklab/checker"
)

// A recorded history is judged line by line: client-1 is paused in its
// section, its lease runs out, client-2 takes over, and then client-1 writes.
func Example() {
	const recorded = `
{"history":1,"clients":["client-1","client-2"],"promise":"lease","ttl_ns":10000000000,"tokens":true,"final":[1],"end_ns":20000000000}
{"op":"acquire","client":"client-1","invoke":0,"return":2000000,"outcome":"ok","token":33}
{"op":"acquire","client":"client-2","invoke":11000000000,"return":11002000000,"outcome":"ok","token":34}
{"op":"write","client":"client-2","tenure":2,"invoke":11203000000,"return":11203500000,"outcome":"ok","value":2}
{"op":"write","client":"client-1","tenure":1,"invoke":12003000000,"return":12004000000,"outcome":"ok","value":1}
{"op":"release","client":"client-2","tenure":2,"invoke":13000000000,"return":13002000000,"outcome":"ok"}`

	h, errs := checker.ReadHistory(strings.NewReader(strings.TrimSpace(recorded)), "pause.jsonl")
	for _, err := range errs {
		fmt.Fprintln(os.Stderr, err)
	}
	report := checker.Check(h)
	report.Explain(h)
	fmt.Println("lock:", report.Lock, "verdict:", report.Verdict)
	for _, f := range report.Findings {
		fmt.Printf("%s: %s\n", f.Kind, f.Text)
	}
	// Output:
	// lock: overlap verdict: two-writers
	// overlap: from 11.002s on client-1 (token 33) and client-2 (token 34) both believed that they held the lock
	// stale-write: client-1 (token 33) wrote 1 at 12.004s, after client-2 (token 34) had written 2 at 11.203s
	// two-writers: client-1 (token 33) wrote 1 at 12.004s, after client-2 (token 34) had written 2 at 11.203s
}
