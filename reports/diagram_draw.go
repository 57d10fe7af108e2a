package reports

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// The drawing's measures, in characters.
const (
	gutter     = 12 // left of the first column: the time
	spacingMin = 19
	spacingMax = 26
)

// cell is one character with its colour.
type cell struct {
	r     rune
	color string
}

// canvas is one line in the making.
type canvas []cell

func (c canvas) put(x int, r rune, color string) {
	if x >= 0 && x < len(c) {
		c[x] = cell{r, color}
	}
}

func (c canvas) write(x int, text, color string) {
	for _, r := range text {
		c.put(x, r, color)
		x++
	}
}

// print writes the line without the blanks at its end.
func (c canvas) print(w io.Writer, s Style) error {
	end := len(c)
	for end > 0 && c[end-1].r == ' ' {
		end--
	}
	var b strings.Builder
	for i := 0; i < end; {
		j := i
		var run strings.Builder
		for ; j < end && c[j].color == c[i].color; j++ {
			run.WriteRune(c[j].r)
		}
		b.WriteString(s.paint(c[i].color, s.text(run.String())))
		i = j
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// draw prints the head, the rows with breaks between them, and the legend.
func (d *diagram) draw(w io.Writer) error {
	d.spacing = min(max((d.style.width()-gutter)/max(len(d.columns), 1), spacingMin), spacingMax)
	d.signs = map[rune]bool{}
	if err := d.head().print(w, d.style); err != nil {
		return err
	}
	last, where, stamp := clock.Time(0), -1, ""
	for i := range d.rows {
		r := &d.rows[i]
		if gap := time.Duration(r.at - last); gap > silence && r.elided == 0 {
			if err := d.print(w, d.breakLine(last+1, where, "~ "+length(gap))); err != nil {
				return err
			}
		}
		last, where = r.at, r.where
		if r.elided > 0 {
			if err := d.print(w, d.breakLine(r.at, r.where, fmt.Sprintf("~ %d rows", r.elided))); err != nil {
				return err
			}
			continue
		}
		now := seconds(r.at)
		if now == stamp {
			now = ""
		} else {
			stamp = now
		}
		if err := d.print(w, d.line(r, now)); err != nil {
			return err
		}
	}
	return d.legend(w)
}

// print prints a line and remembers its signs for the legend.
func (d *diagram) print(w io.Writer, c canvas) error {
	for i := range c {
		if c[i].r >= utf8.RuneSelf || c[i].r == '~' {
			d.signs[c[i].r] = true
		}
	}
	return c.print(w, d.style)
}

func (d *diagram) blank() canvas {
	c := make(canvas, gutter+len(d.columns)*d.spacing)
	for i := range c {
		c[i].r = ' '
	}
	return c
}

func (d *diagram) x(i int) int { return gutter + i*d.spacing }

func (d *diagram) head() canvas {
	c := d.blank()
	c.write(gutter-2-len("time"), "time", "2")
	for i := range d.columns {
		c.write(d.x(i), fit(d.columns[i].name, d.spacing-1), "1")
	}
	return c
}

// lifelines draws every column as it is at a moment.
func (d *diagram) lifelines(at clock.Time, where int) canvas {
	c := d.blank()
	for i := range d.columns {
		r, color, who := d.lifeline(&d.columns[i], at, where)
		c.put(d.x(i), r, color)
		c.write(d.x(i)+1, who, color)
	}
	return c
}

// lifeline is a column's character at a moment and, for the lock's, whose it
// is.
func (d *diagram) lifeline(col *column, at clock.Time, where int) (r rune, color, who string) {
	if col.proc != noProcess && inSpans(d.downs[col.proc], where) {
		return ' ', "", ""
	}
	if col.proc != noProcess && inSpans(d.stops[col.proc], where) {
		return '▒', "35", ""
	}
	if col.lock {
		if holders := d.holders(at); len(holders) > 0 {
			return '┃', "1;36", fit(d.numbers(holders), d.spacing-2)
		}
	}
	if c := d.client(col.proc); c >= 0 && d.believes(c, at) != nil {
		return '║', "1;36", ""
	}
	return '│', "2", ""
}

// numbers are those of the holders' clients: 1,3.
func (d *diagram) numbers(holders []*checker.Op) string {
	out := ""
	for i, h := range holders {
		if i > 0 {
			out += ","
		}
		out += shortName(d.clientName(h.Client))
	}
	return out
}

// breakLine stands for a stretch in which nothing happens, or nothing is
// drawn.
func (d *diagram) breakLine(at clock.Time, where int, text string) canvas {
	c := d.lifelines(at, where)
	for i := range d.columns {
		if x := d.x(i); c[x].r == '│' {
			c.put(x, '~', "2")
		}
	}
	c.write(gutter-2-utf8.RuneCountInString(text), text, "2")
	return c
}

// line draws one row.
func (d *diagram) line(r *row, stamp string) canvas {
	c := d.lifelines(r.at, r.where)
	c.write(gutter-2-len(stamp), stamp, "2")
	from, to := d.index(r.from), d.index(r.to)
	if r.from != r.to && from >= 0 && to >= 0 {
		d.drawArrow(c, r, d.x(from), d.x(to))
	}
	if r.remark != "" {
		x := d.remarkAt(r)
		for x < len(c) && c[x-1].r != ' ' { // behind the number of the lock's holder
			x++
		}
		c.write(x, fitRemark(r.remark, min(d.spacing-3, len(c)-x)), markColor[r.mark])
	}
	return c
}

func (d *diagram) index(p sim.ProcID) int {
	for i := range d.columns {
		if d.columns[i].proc == p {
			return i
		}
	}
	return -1
}

// remarkAt is where a remark is written: beside its column, or beside the last
// one if it has none.
func (d *diagram) remarkAt(r *row) int {
	i := d.index(r.on)
	if i < 0 {
		i = len(d.columns) - 1
	}
	return d.x(i) + 2
}

// drawArrow draws an arrow from one lifeline to another; its label begins near
// the sender.
func (d *diagram) drawArrow(c canvas, r *row, from, to int) {
	color := markColor[r.mark]
	step := 1
	if to < from {
		step = -1
	}
	start, end := from+step, to-step
	head, tail := '▶', '◀'
	if step < 0 {
		head, tail = tail, head
	}
	switch r.ends {
	case departs:
		end = to - step*4
		head = '…'
	case isLost:
		end = to - step*4
		head = '×'
	}
	for x := start; x != end+step; x += step {
		c.put(x, crossing(c, x, d), color)
	}
	c.put(end, head, color)
	switch r.ends {
	case isLate:
		c.put(start, '…', color)
	case folded:
		c.put(start, tail, color)
	}
	room := (end-start)*step - 4
	label := " " + shorten(r.label, room) + " "
	x := start + 2
	if step < 0 {
		x = start - 1 - utf8.RuneCountInString(label)
	}
	c.write(x, label, color)
}

// crossing is the character of an arrow where it passes a position.
func crossing(c canvas, x int, d *diagram) rune {
	if (x-gutter)%d.spacing != 0 {
		return '─'
	}
	switch c[x].r {
	case '│':
		return '┼'
	case '║', '▒':
		return '╫'
	case '┃':
		return '╂'
	}
	return '─'
}

// fit cuts a text to so many characters.
func fit(text string, room int) string {
	if utf8.RuneCountInString(text) <= room {
		return text
	}
	if room < 1 {
		return ""
	}
	return string([]rune(text)[:room-1]) + "…"
}

// fitRemark cuts a remark. Where a fault's number does not fit in words, a
// short form does: "(fault 1)" becomes "#1".
func fitRemark(text string, room int) string {
	if utf8.RuneCountInString(text) > room {
		if head, number, ok := strings.Cut(text, " (fault "); ok {
			text = head + " #" + strings.TrimSuffix(number, ")")
		}
	}
	return fit(text, room)
}

// shorten drops a label's last words until it fits. A quoted text is one word.
func shorten(text string, room int) string {
	for utf8.RuneCountInString(text) > room {
		i := strings.LastIndexByte(text, ' ')
		if strings.HasSuffix(text, "'") && strings.Count(text, "'") > 1 {
			i = strings.LastIndexByte(text[:strings.LastIndexByte(text[:len(text)-1], '\'')], ' ')
		}
		if i <= 0 || !strings.Contains(text[:i], " ") { // one word says too little
			return fit(text, room)
		}
		text = text[:i]
	}
	return text
}

// legend explains the signs that occur in this diagram, and says what is
// missing in it.
func (d *diagram) legend(w io.Writer) error {
	var parts []string
	explain := func(words string, signs ...rune) {
		if slices.ContainsFunc(signs, func(r rune) bool { return d.signs[r] }) {
			parts = append(parts, words)
		}
	}
	if d.lockless() {
		explain("║ in its section", '║', '╫')
	} else {
		explain("║ believes it "+d.nouns().holds, '║', '╫')
	}
	explain("▒ stopped", '▒')
	explain("┃1 "+d.nouns().isHis, '┃')
	explain("~ time passes", '~')
	explain("┼ ╫ ╂ an arrow passes by", '┼', '╫', '╂')
	explain("× is lost", '×')
	if slices.ContainsFunc(d.rows, func(r row) bool { return r.ends == departs || r.ends == isLate }) {
		parts = append(parts, "… on its way")
	}
	if slices.ContainsFunc(d.rows, func(r row) bool { return r.ends == folded || strings.HasPrefix(r.label, "+") }) {
		parts = append(parts, "+40 so many more of the kind")
	}
	lines := joined(parts, "   ", d.style.width()-gutter)
	if n := len(d.left); n > 0 {
		shown := d.left
		if n > 6 {
			shown = append(append([]string(nil), d.left[:5]...), "... "+d.left[n-1])
		}
		lines = append(lines, fmt.Sprintf("left out: %s (%d processes)", strings.Join(shown, ", "), n))
	}
	if d.peers > 0 {
		lines = append(lines, fmt.Sprintf("left out: %d messages between servers", d.peers))
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%s%s\n", strings.Repeat(" ", gutter), d.style.faint(d.style.text(l))); err != nil {
			return err
		}
	}
	return nil
}

// joined joins parts into lines of at most width characters.
func joined(parts []string, by string, width int) (lines []string) {
	for _, p := range parts {
		if n := len(lines); n > 0 && utf8.RuneCountInString(lines[n-1]+by+p) <= width {
			lines[n-1] += by + p
			continue
		}
		lines = append(lines, p)
	}
	return lines
}
