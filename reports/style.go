package reports

import (
	"strings"
	"unicode/utf8"
)

// Style says how texts for people look. The zero Style is plain UTF-8 text, 100
// columns wide.
type Style struct {
	Color bool // SGR colours, for a terminal
	ASCII bool // nothing beyond ASCII, for LANG=C
	Width int  // columns; 0: 100
}

const widthDefault = 100

func (s Style) width() int {
	if s.Width <= 0 {
		return widthDefault
	}
	return max(s.Width, 60)
}

// The SGR codes of each mark. A reader must never need them: every mark also
// has a sign or a word.
var markColor = [...]string{
	MarkNone: "", MarkFault: "35", MarkUnknown: "33", MarkRefused: "1;33",
	MarkStale: "1;31", MarkFinding: "1;31", MarkElided: "2",
}

// The signs stand before a line; they are ASCII, so that LANG=C sees the same.
var markSign = [...]string{
	MarkNone: " ", MarkFault: "*", MarkUnknown: "?", MarkRefused: "-", MarkStale: "!", MarkFinding: "!", MarkElided: " ",
}

// paint colours a text with an SGR code; "" leaves it as it is.
func (s Style) paint(code, text string) string {
	if !s.Color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) bold(text string) string  { return s.paint("1", text) }
func (s Style) faint(text string) string { return s.paint("2", text) }

// asciiFor are the stand-ins for what the drawings use.
var asciiFor = strings.NewReplacer(
	"│", "|", "║", "#", "▒", ":", "┃", "H", "─", "-", "┼", "+", "╫", "#", "╂", "H", "├", "|", "┤", "|",
	"▶", ">", "◀", "<", "×", "x", "…", "..", "·", ".",
)

// text returns a text that the style may show.
func (s Style) text(t string) string {
	if !s.ASCII {
		return t
	}
	t = asciiFor.Replace(t)
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, t)
}

// wrap breaks a text at spaces into lines of at most width characters; a longer
// word has its own line.
func wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if used > 0 && used+1+n > width {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	return append(lines, line)
}
