package reports

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// grid writes lines as columns. The first line is the head; color tells the SGR
// code of each other cell, "" for none.
func grid(w io.Writer, lines [][]string, color func(line, column int) string, style Style) error {
	widths := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, cell := range l {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, l := range lines {
		var b strings.Builder
		for i, cell := range l {
			padded := cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if n == 0 {
				padded = style.bold(padded)
			} else {
				padded = style.paint(color(n, i), padded)
			}
			b.WriteString(padded + "  ")
		}
		if _, err := fmt.Fprintln(w, style.text(strings.TrimRight(b.String(), " "))); err != nil {
			return err
		}
	}
	return nil
}

// inColumn colours the cells of one column, a code for each line.
func inColumn(column int, codes []string) func(line, column int) string {
	return func(line, c int) string {
		if c == column {
			return codes[line]
		}
		return ""
	}
}
