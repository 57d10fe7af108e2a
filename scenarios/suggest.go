package scenarios

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// wordMax is the longest word, in bytes, that is worth correcting. Nobody
// mistypes a longer one, and comparing takes time that grows with its square.
const wordMax = 64

// Suggest returns `did you mean "x"?` for the known word nearest to a mistyped
// one, or "" when none is near. A word that is the last part of a known path
// stands for it: gc-pause is near kleppmann/gc-pause.
func Suggest(word string, known []string) string {
	if len(word) > wordMax || word == "" {
		return ""
	}
	lower := strings.ToLower(word)
	// One slip in short words, about one in three letters in longer ones.
	near := max(1, (len(word)+1)/3)
	best := ""
	for _, k := range known {
		if strings.HasSuffix(k, "/"+lower) || swapped(lower, k) {
			return didYouMean(k)
		}
		if d := levenshtein.Distance(lower, strings.ToLower(k), nil); d <= near && d < len(word) {
			best, near = k, d-1
		}
	}
	if best == "" {
		return ""
	}
	return didYouMean(best)
}

// swapped reports whether two neighbouring letters of b, exchanged, give a: one
// slip of the fingers, though two edits.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

func didYouMean(word string) string { return fmt.Sprintf("did you mean %q?", word) }

// unknown says that a word is not among the known ones and what would be
// right: the nearest, or else all of them. what is "fault", "parameter", ...
func unknown(what, word string, known []string) string {
	hint := Suggest(word, known)
	if hint == "" {
		hint = "known are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("unknown %s %q; %s", what, word, hint)
}
