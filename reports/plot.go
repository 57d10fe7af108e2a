package reports

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"locklab/scenarios"
)

// Figure is one picture of a report. What it says is computed from the
// comparison, and so is its reading.
type Figure struct {
	Name    string // of its files, without ending
	Title   string
	Reading string // one sentence: what is to be seen
	Note    string // how to read it, sample sizes
	width   vg.Length
	height  vg.Length // of the body
	body    func(*pen)
}

// PlotDir is the directory beside a report in which its pictures stand.
const PlotDir = "plots"

// SVG is the picture's file as SVG, in the report's directory.
func (f *Figure) SVG() string { return PlotDir + "/" + f.Name + ".svg" }

// PNG is the picture's file as PNG, in the report's directory.
func (f *Figure) PNG() string { return PlotDir + "/" + f.Name + ".png" }

// Figures returns the pictures of a comparison, as far as its parts are there.
func Figures(c *scenarios.Comparison) []Figure {
	var out []Figure
	out = append(out, matrixFigures(c)...)
	out = append(out, curveFigures(c)...)
	out = append(out, mapFigures(c)...)
	out = append(out, recoveryFigures(c)...)
	out = append(out, priceFigures(c)...)
	out = append(out, herdFigures(c)...)
	return append(out, fewestFigures(c)...)
}

// The sizes of a picture, in points.
const (
	margin     = 12.0
	titleSize  = 13.0
	textSize   = 9.0
	smallSize  = 7.5
	lineFactor = 1.3 // line height over font size
)

// WriteSVG writes the picture as SVG.
func (f *Figure) WriteSVG(w io.Writer) error {
	height, lines := f.layout()
	canvas := vgsvg.New(f.width, height)
	f.draw(canvas, height, lines)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// plotDPI is the resolution of PNG pictures.
const plotDPI = 110

// WritePNG writes the picture as PNG.
func (f *Figure) WritePNG(w io.Writer) error {
	height, lines := f.layout()
	canvas := vgimg.NewWith(vgimg.UseWH(f.width, height), vgimg.UseDPI(plotDPI), vgimg.UseBackgroundColor(color.White))
	f.draw(canvas, height, lines)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// figureText is the text beneath a body.
type figureText struct{ reading, note []string }

// layout breaks the text into lines and adds up the height.
func (f *Figure) layout() (vg.Length, figureText) {
	p := newPen(draw.Canvas{}, 0)
	wide := f.width - 2*margin
	t := figureText{reading: p.wrap(f.Reading, textSize, wide), note: p.wrap(f.Note, smallSize, wide)}
	h := margin + titleSize*lineFactor + 4 + f.height + 6
	h += vg.Length(len(t.reading))*textSize*lineFactor + vg.Length(len(t.note))*smallSize*lineFactor + margin
	return h, t
}

func (f *Figure) draw(canvas vg.CanvasSizer, height vg.Length, t figureText) {
	c := draw.New(canvas)
	p := newPen(c, height)
	p.rect(0, 0, f.width, height, color.White)
	y := vg.Length(margin)
	p.text(margin, y+titleSize, f.Title, titleSize, ink, bold)
	y += titleSize*lineFactor + 4
	f.body(p.below(y))
	y += f.height + 6
	for _, line := range t.reading {
		y += textSize * lineFactor
		p.text(margin, y, line, textSize, ink, 0)
	}
	for _, line := range t.note {
		y += smallSize * lineFactor
		p.text(margin, y, line, smallSize, faint, 0)
	}
}

// The colours of M. Okabe and K. Ito, "Color Universal Design" (2008), which
// people with any kind of colour vision can tell apart. Lines also differ in
// their dashes and marks, cells in their letters.
var (
	ink        = color.RGBA{0x22, 0x22, 0x22, 0xff}
	faint      = color.RGBA{0x66, 0x66, 0x66, 0xff}
	rule       = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
	orange     = color.RGBA{0xe6, 0x9f, 0x00, 0xff}
	skyBlue    = color.RGBA{0x56, 0xb4, 0xe9, 0xff}
	green      = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	yellow     = color.RGBA{0xf0, 0xe4, 0x42, 0xff}
	blue       = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	vermillion = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	purple     = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
)

// lineLook is how one line of a plot looks.
type lineLook struct {
	color  color.RGBA
	dashes []vg.Length
	mark   draw.GlyphDrawer
}

// lookOf is the look of the i-th line.
func lookOf(i int) lineLook {
	colors := []color.RGBA{blue, vermillion, green, purple, ink, orange, skyBlue, faint}
	dashes := [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}}
	marks := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{}}
	return lineLook{colors[i%len(colors)], dashes[i%len(dashes)], marks[i%len(marks)]}
}

// verdictLook is how a verdict looks in a cell: a colour, a letter, and the
// colour of what is written on it. The colours also differ in lightness.
func verdictLook(verdict string) (fill color.RGBA, letter string, on color.RGBA) {
	switch verdict {
	case "two-writers":
		return vermillion, "T", color.RGBA{0xff, 0xff, 0xff, 0xff}
	case "lost-update":
		return orange, "L", ink
	case "stuck":
		return yellow, "K", ink
	case "fenced":
		return color.RGBA{0xbc, 0xe0, 0xf7, 0xff}, "F", ink
	case "safe":
		return color.RGBA{0xf7, 0xf7, 0xf7, 0xff}, "S", ink
	}
	return color.RGBA{0xdd, 0xdd, 0xdd, 0xff}, "V", ink
}

// verdictLegend explains the letters.
const verdictLegend = "T two-writers, L lost-update, K stuck, F fenced (something was refused, no harm), S safe"

// pen draws with y growing downwards from its top, in points.
type pen struct {
	c     draw.Canvas
	top   vg.Length // in the canvas's own coordinates
	fonts *font.Cache
}

func newPen(c draw.Canvas, top vg.Length) *pen {
	return &pen{c: c, top: top, fonts: font.NewCache(liberation.Collection())}
}

// below is the pen for what lies below y.
func (p *pen) below(y vg.Length) *pen { return &pen{p.c, p.top - y, p.fonts} }

// How a text stands: where its anchor is, and in which weight.
const (
	bold   = 1 << iota
	right  // it ends at x
	middle // its middle is at x
	upward // it is turned to run upwards, from y
)

func (p *pen) style(size float64, c color.Color, how int) draw.TextStyle {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Length(size)}
	if how&bold != 0 {
		f.Weight = stdfont.WeightBold
	}
	s := draw.TextStyle{Color: c, Font: f, Handler: text.Plain{Fonts: p.fonts}}
	switch {
	case how&right != 0:
		s.XAlign = draw.XRight
	case how&middle != 0:
		s.XAlign = draw.XCenter
	}
	if how&upward != 0 {
		s.Rotation = upwardAngle
	}
	return s
}

// text writes a line whose baseline is at y.
func (p *pen) text(x, y vg.Length, s string, size float64, c color.Color, how int) {
	p.c.FillText(p.style(size, c, how), vg.Point{X: x, Y: p.top - y}, s)
}

// width is how wide a text is.
func (p *pen) width(s string, size float64, how int) vg.Length {
	return p.style(size, ink, how).Width(s)
}

// wrap breaks a text into lines that are no wider than it may be.
func (p *pen) wrap(s string, size float64, wide vg.Length) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		longer := strings.TrimSpace(line + " " + word)
		if line != "" && p.width(longer, size, 0) > wide {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// cut shortens a text to what fits.
func (p *pen) cut(s string, size float64, wide vg.Length) string {
	if p.width(s, size, 0) <= wide {
		return s
	}
	r := []rune(s)
	for len(r) > 1 && p.width(string(r)+"..", size, 0) > wide {
		r = r[:len(r)-1]
	}
	return string(r) + ".."
}

func (p *pen) rect(x, y, w, h vg.Length, c color.Color) {
	p.c.FillPolygon(c, p.corners(x, y, w, h))
}

// corner fills the upper left corner of a box.
func (p *pen) corner(x, y, size vg.Length) {
	p.c.FillPolygon(ink, []vg.Point{{X: x, Y: p.top - y}, {X: x + size, Y: p.top - y}, {X: x, Y: p.top - y - size}})
}

func (p *pen) corners(x, y, w, h vg.Length) []vg.Point {
	return []vg.Point{{X: x, Y: p.top - y}, {X: x + w, Y: p.top - y}, {X: x + w, Y: p.top - y - h}, {X: x, Y: p.top - y - h}}
}

func (p *pen) line(c color.Color, width vg.Length, dashes []vg.Length, points ...vg.Point) {
	at := make([]vg.Point, len(points))
	for i, q := range points {
		at[i] = vg.Point{X: q.X, Y: p.top - q.Y}
	}
	p.c.StrokeLines(draw.LineStyle{Color: c, Width: width, Dashes: dashes}, at)
}

func (p *pen) mark(c color.Color, g draw.GlyphDrawer, x, y vg.Length) {
	p.c.DrawGlyph(draw.GlyphStyle{Color: c, Radius: 2.4, Shape: g}, vg.Point{X: x, Y: p.top - y})
}

// area fills a band between two lines, transparently.
func (p *pen) area(c color.RGBA, points ...vg.Point) {
	at := make([]vg.Point, len(points))
	for i, q := range points {
		at[i] = vg.Point{X: q.X, Y: p.top - q.Y}
	}
	p.c.FillPolygon(color.NRGBA{c.R, c.G, c.B, 0x2c}, at)
}

// share100 writes a rate for people: few digits, and never a 0 % or 100 % that
// is not exact.
func share100(rate float64) string {
	switch {
	case rate == 0:
		return "0 %"
	case rate == 1:
		return "100 %"
	case rate < 0.001:
		return "<0.1 %"
	case rate > 0.999:
		return ">99.9 %"
	case rate < 0.1 || rate > 0.99:
		return fmt.Sprintf("%.1f %%", 100*rate)
	}
	return fmt.Sprintf("%.0f %%", 100*rate)
}

// between writes how many, where it may differ.
func between(low, high int64) string {
	if low == high {
		return fmtInt(low)
	}
	return fmtInt(low) + " to " + fmtInt(high)
}

// intervalText writes a confidence interval in percent, like 12-17.
func intervalText(s scenarios.Share) string {
	digits := func(x float64) string {
		if x > 0 && x < 0.1 || x > 0.9 && x < 1 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*x), ".0")
		}
		return fmt.Sprintf("%.0f", 100*x)
	}
	return digits(s.Low) + "–" + digits(s.High)
}
