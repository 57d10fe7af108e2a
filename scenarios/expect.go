package scenarios

import "strings"

// Expectation is one row of what a scenario is expected to show. It holds for
// seeds 1 to 100.
type Expectation struct {
	Designs   []string // patterns such as redis/*; none means every design
	Resources []string // patterns; none means every resource
	Verdict   string   // one of Verdicts
	Lock      string   // one of LockAnswers; "" where the answer depends on the seed
	Why       string   // the reason, for a reader
	Pos       Pos
}

// Matches reports whether the row speaks about a design under a resource.
func (e *Expectation) Matches(design, resource string) bool {
	return matchesAny(e.Designs, design) && matchesAny(e.Resources, resource)
}

// Met reports whether a run's two answers are the expected ones.
func (e *Expectation) Met(verdict, lock string) bool {
	return e.Verdict == verdict && (e.Lock == "" || e.Lock == lock)
}

// Verdicts lists the answers about the data, the most severe first.
func Verdicts() []string {
	return []string{"two-writers", "lost-update", "stuck", "fenced", "safe", "vacuous"}
}

// LockAnswers lists the answers about the lock, the most severe first.
func LockAnswers() []string { return []string{"broken", "overlap", "kept"} }

func matchesAny(patterns []string, name string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if MatchPattern(p, name) {
			return true
		}
	}
	return false
}

// MatchPattern reports whether a name matches a pattern in which * stands for
// any text, slashes included: redis/* means every design of that family.
func MatchPattern(pattern, name string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] { // the earliest match leaves most for the rest
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[last])
}
