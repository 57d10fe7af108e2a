package reports

import (
	"fmt"
	"strings"

	"locklab/scenarios"
)

// recoveryFigures draws, for each way to die, how long it took until somebody
// worked again: an empirical distribution over the TTL for each design, and
// each TTL of its own for the designs whose time does not scale with it.
func recoveryFigures(c *scenarios.Comparison) []Figure {
	var out []Figure
	for _, death := range []string{"process", "machine"} {
		if f, ok := recoveryFigure(c, death); ok {
			out = append(out, f)
		}
	}
	return out
}

func recoveryFigure(c *scenarios.Comparison, death string) (Figure, bool) {
	var list []panel
	runs := int64(0)
	for _, g := range groups() {
		var joined []alike
		for i := range c.Recovery {
			r := &c.Recovery[i]
			if r.Death != death || groupOf(r.Design) != g {
				continue
			}
			runs = max(runs, r.Runs)
			joined = join(joined, r.Design+fmt.Sprintf(" (ttl %gs)", float64(r.TTL)/1000), distribution(r))
		}
		if len(joined) > 0 {
			list = append(list, panel{title: g, series: recoveryLines(joined, g), xs: scale{label: "time until somebody works again / TTL", max: 2},
				ys: scale{label: "runs in which somebody does", max: 1, percent: true}})
		}
	}
	if len(list) == 0 {
		return Figure{}, false
	}
	return panels(Figure{Name: "recovery-" + death, Title: "The owner's " + death + " dies: when does somebody work again?",
		Reading: recoveryReading(c, death),
		Note: fmt.Sprintf("Empirical distributions of the time from the crash to the next owner's first access to the data, over the TTL. The owner dies before the first to the eighth of its writes in turn, a tenth of the TTL apart. "+
			"Up to %d runs a line; a line that stays below 100 %% has runs in which nobody worked again within 4 TTL. Lines that differ by less than 2 %% of the TTL everywhere are drawn as one.", runs)}, list, 3), true
}

// distribution is the share of runs by time over TTL, at steps of a fiftieth:
// lines of designs that differ only by a message's latency are one.
func distribution(r *scenarios.Recovery) series {
	s := series{steps: true}
	for k := 0; k <= 100; k++ {
		at := float64(k) / 50
		n := 0
		for _, ms := range r.Times {
			if float64(ms)/float64(r.TTL) <= at {
				n++
			}
		}
		s.x, s.y = append(s.x, at), append(s.y, float64(n)/float64(r.Runs))
	}
	return s
}

// recoveryLines names the lines: designs, and the TTLs where they differ.
func recoveryLines(list []alike, group string) []series {
	out := lines(list, group)
	for i := range out {
		merged := mergeTTLs(strings.Split(out[i].name, ", "))
		if len(list) > 0 && !differ(list) {
			for k := range merged {
				merged[k], _, _ = strings.Cut(merged[k], " (ttl ")
			}
		}
		out[i].name = strings.Join(merged, ", ")
	}
	return out
}

// differ reports whether some design has two lines, one for each TTL.
func differ(list []alike) bool {
	line := map[string]int{}
	for i, a := range list {
		for _, n := range a.names {
			name, _, _ := strings.Cut(n, " (ttl ")
			if at, ok := line[name]; ok && at != i {
				return true
			}
			line[name] = i
		}
	}
	return false
}

// mergeTTLs turns "a (ttl 2s), a (ttl 10s)" into "a (ttl 2s, 10s)".
func mergeTTLs(names []string) []string {
	var out []string
	at := map[string]int{}
	for _, n := range names {
		name, ttl, _ := strings.Cut(strings.TrimSuffix(n, ")"), " (ttl ")
		if i, ok := at[name]; ok {
			out[i] = strings.TrimSuffix(out[i], ")") + ", " + ttl + ")"
			continue
		}
		at[name] = len(out)
		out = append(out, n)
	}
	return out
}

// recoveryReading names the fastest and slowest designs, by the median at the
// TTL that most runs have in common.
func recoveryReading(c *scenarios.Comparison, death string) string {
	var fast, slow, never []string
	quick, late := -1.0, -1.0
	designs := 0
	for i := range c.Recovery {
		r := &c.Recovery[i]
		if r.Death != death || r.TTL != commonTTL(c) {
			continue
		}
		designs++
		if int64(len(r.Times))*2 <= r.Runs {
			never = append(never, r.Design)
			continue
		}
		m := float64(r.Times[(r.Runs-1)/2]) / 1000
		if quick < 0 || m < quick {
			quick, fast = m, nil
		}
		if m == quick {
			fast = append(fast, r.Design)
		}
		if m > late {
			late, slow = m, nil
		}
		if m == late {
			slow = append(slow, r.Design)
		}
	}
	text := fmt.Sprintf("With a TTL of %gs the median is between %.2f s (%s) and %.2f s (%s)", float64(commonTTL(c))/1000, quick, few(fast), late, few(slow))
	if quick < 0 {
		text = fmt.Sprintf("With a TTL of %gs no design works again in half of the runs", float64(commonTTL(c))/1000)
	}
	if len(never) > 0 {
		text += fmt.Sprintf("; %d of %d designs do not work again within 4 TTL in half of the runs: %s", len(never), designs, few(never))
	}
	return text + "."
}

// commonTTL is the TTL in the middle of those that were measured.
func commonTTL(c *scenarios.Comparison) int64 {
	var ttls []int64
	for i := range c.Recovery {
		if r := &c.Recovery[i]; len(ttls) == 0 || r.TTL > ttls[len(ttls)-1] {
			ttls = append(ttls, r.TTL)
		}
	}
	return ttls[len(ttls)/2]
}

// few names at most four.
func few(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:3], ", ") + fmt.Sprintf(" and %d more", len(names)-3)
	}
	return strings.Join(names, ", ")
}
