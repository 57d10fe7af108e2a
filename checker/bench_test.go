package checker_test

import (
	"fmt"
	"strings"
	"testing"

	. "locklab/checker"
)

// lock3 is the history that the budget is about: 3 clients with 3 sections
// each, about 60 operations, one pause whose write is refused by a fenced
// store. The section is repeated, and everything comes out right.
func lock3() *History {
	var b strings.Builder
	fmt.Fprintln(&b, "lease 10; tokens; final 9; stuck 30; end 100")
	fmt.Fprintln(&b, "C1 acquire 0 token=1 section=1 expired=10 learned=13")
	fmt.Fprintln(&b, "C1 read 1 =0")
	at, value := 10.5, 0
	for n := range 9 {
		c := []string{"C2", "C3", "C1"}[n%3]
		section := 1 + n/3
		fmt.Fprintf(&b, "%s acquire %.1f no section=%d\n", c, at, section)
		fmt.Fprintf(&b, "%s acquire %.1f token=%d section=%d\n", c, at+.2, n+2, section)
		fmt.Fprintf(&b, "%s read %.1f =%d\n", c, at+.4, value)
		value++
		fmt.Fprintf(&b, "%s write %.1f =%d\n", c, at+1.4, value)
		if n == 0 {
			fmt.Fprintf(&b, "C1 write %.1f =1 no of=1\n", at+1.5)
		}
		fmt.Fprintf(&b, "%s renew %.1f\n", c, at+1.6)
		fmt.Fprintf(&b, "%s release %.1f\n", c, at+1.7)
		at += 3
	}
	return story(b.String())
}

func BenchmarkCheck(b *testing.B) {
	h := lock3()
	var c Checker
	if r := c.Check(h); r.Verdict != VerdictFenced || len(r.Findings) != 2 {
		b.Fatalf("%v", r)
	}
	b.ReportAllocs()
	b.ReportMetric(float64(len(h.Ops)), "ops/history")
	for b.Loop() {
		c.Check(h)
	}
}

// The time must grow in step with the history, also where nothing is right:
// no lock at all, and every section overlaps its neighbours.
func BenchmarkCheckUnlocked(b *testing.B) {
	for _, sections := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(sections), func(b *testing.B) {
			var s strings.Builder
			fmt.Fprintln(&s, "nothing; final 1")
			for n := range sections {
				c := fmt.Sprint("C", n%3)
				fmt.Fprintf(&s, "%s acquire %d.0 until=%d.5 lost=%d.5\n%s read %d.1 =%d\n%s write %d.2..%d.9..%d.9 =%d\n",
					c, n, n+1, n+1, c, n, max(n-1, 0), c, n, n+1, n+1, n+1)
			}
			h := story(s.String())
			var c Checker
			for b.Loop() {
				c.Check(h)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(h.Ops)), "ns/op-checked")
		})
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	h := lock3()
	var c Checker
	c.Check(h)
	if n := testing.AllocsPerRun(100, func() { c.Check(h) }); n > 0 {
		t.Errorf("%v allocations a history, want none", n)
	}
}
