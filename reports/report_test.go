package reports

import (
	"bytes"
	"context"
	"encoding/csv"
	"image/png"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/scenarios"
)

// evil is a title that means something in HTML, in Markdown, in a table and in
// a spreadsheet.
const evil = "=HYPERLINK(\"x\") <script>alert(1)</script> | [a](b) `c` *d*\r\n# e"

// smallComparison has every part, from few designs. It is gathered once.
func smallComparison(t *testing.T) *scenarios.Comparison {
	c, err := gatheredOnce()
	require.NoError(t, err)
	return c
}

var gatheredOnce = sync.OnceValues(func() (*scenarios.Comparison, error) {
	s, err := scenarios.Find("kleppmann/gc-pause")
	if err != nil {
		return nil, err
	}
	s.Title, s.File = evil, "dir/=1|`x`.yaml"
	return scenarios.Compare(context.Background(), scenarios.CompareSpec{Seed: 1, Runs: 8, Quick: true, Scenarios: []string{"mine"},
		Designs: []string{"redis/lua-token", "redis/lua-release", "postgres/advisory-session", "redlock", "zookeeper/lock"}},
		scenarios.CompareOptions{Find: func(string) (*scenarios.Scenario, error) { return s, nil }})
})

func written(t *testing.T, write func(io.Writer) error) string {
	var b bytes.Buffer
	require.NoError(t, write(&b))
	return b.String()
}

// Every part has its pictures, every picture a reading and a note, and the same
// comparison gives the same bytes.
func TestFigures(t *testing.T) {
	c := smallComparison(t)
	figures, again := Figures(c), Figures(c)
	var names []string
	for i := range figures {
		f := &figures[i]
		names = append(names, f.Name)
		require.Regexp(t, `^[^.].*\.$`, f.Reading, f.Name)
		require.NotContains(t, f.Reading, "%!", f.Name)
		require.NotContains(t, f.Note, "%!", f.Name)
		require.Regexp(t, `runs?\(?s?\)? |executions|placements`, f.Note+f.Reading, f.Name)
		svg := written(t, f.WriteSVG)
		require.Equal(t, svg, written(t, again[i].WriteSVG), f.Name)
		require.Contains(t, svg, "<svg")
		if i%6 > 0 { // PNG is slow
			continue
		}
		picture := written(t, f.WritePNG)
		require.Equal(t, picture, written(t, again[i].WritePNG), f.Name)
		_, err := png.Decode(strings.NewReader(picture))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"matrix", "matrix-protected", "curve-pause", "curve-clock-step", "curve-clock-step-client", "curve-clock-rate",
		"map-pause-ttl", "map-step-delay-redlock", "recovery-process", "recovery-machine", "price", "herd", "fewest"}, names)
}

// A report of which a part is missing is drawn without it.
func TestFiguresOfParts(t *testing.T) {
	whole := smallComparison(t)
	require.Empty(t, Figures(&scenarios.Comparison{}))
	for _, part := range []scenarios.Comparison{
		{Matrix: whole.Matrix, Designs: whole.Designs, Resources: whole.Resources, Families: whole.Families}, {Fewest: whole.Fewest},
		{Curves: whole.Curves}, {Maps: whole.Maps}, {Recovery: whole.Recovery}, {Prices: whole.Prices}, {Herds: whole.Herds},
	} {
		figures := Figures(&part)
		require.NotEmpty(t, figures)
		for i := range figures {
			written(t, figures[i].WriteSVG)
		}
		written(t, func(w io.Writer) error { return WriteMarkdown(w, &part) })
	}
}

// Texts of others are harmless in Markdown.
func TestMarkdownEscapes(t *testing.T) {
	c := smallComparison(t)
	text := written(t, func(w io.Writer) error { return WriteMarkdown(w, c) })
	require.NotContains(t, text, "<script")
	require.Contains(t, text, "`` locklab run 'dir/=1\\|`x`.yaml'")
	require.Contains(t, text, `### =HYPERLINK("x") &lt;script&gt;alert(1)&lt;/script&gt; \| \[a\](b) \`+"`c\\`"+` \*d\*  \# e`)
	columns := 0
	for _, line := range strings.Split(text, "\n") { // a cell's bar does not end it
		if !strings.HasPrefix(line, "| ") {
			columns = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns > 0 {
			require.Equal(t, columns, n, line)
		}
		columns = n
	}
	require.Equal(t, "`a\\|b c`", mdCode("a|b\nc"))
	require.Equal(t, "``` a``b ```", mdCode("a``b"))
}

// The file loads in a spreadsheet: every row has every column, and none is a
// formula.
func TestCSVEscapes(t *testing.T) {
	c := smallComparison(t)
	text := written(t, func(w io.Writer) error { return WriteCSV(w, c) })
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+len(c.Matrix)+len(c.Scenarios))
	require.Equal(t, "part", rows[0][0])
	for _, row := range rows {
		for _, cell := range row {
			require.NotContains(t, cell, "\n")
			require.NotContains(t, cell, "\r")
			if cell != "" {
				require.NotContains(t, "=+-@\t", cell[:1], cell)
			}
		}
	}
	require.Contains(t, text, `'=HYPERLINK`)
	for _, s := range []string{"=1+1", "+1", "-1", "@x", "\t=1", "\r\n=1", "\u0085=1"} {
		require.True(t, strings.HasPrefix(csvText(s), "'"), "%q", s)
	}
	require.Equal(t, "a, b", csvText("a, b"))
}

// The numbers of a row are those of its cell.
func TestCSVRow(t *testing.T) {
	c := &scenarios.Comparison{Families: scenarios.FaultFamilies(), Matrix: []scenarios.MatrixCell{{Design: "d", Resource: "r", Family: "pause",
		Possible: true, Runs: 10, Verdicts: []scenarios.Outcome{{Answer: "two-writers", Runs: 3, First: 4}, {Answer: "safe", Runs: 7, First: 1}},
		Locks: []scenarios.Outcome{{Answer: "overlap", Runs: 10}}, Worst: "two-writers", Share: scenarios.NewShare(3, 10), First: 4, Command: "locklab x"}}}
	text := written(t, func(w io.Writer) error { return WriteCSV(w, c) })
	require.Equal(t, "matrix,pause,,a process is paused,d,r,yes,two-writers,3,10,0.300000,0.107791,0.603222,3,0,0,0,7,0,0,10,0,4,,,,,,locklab x",
		strings.Split(text, "\n")[1])
}

func TestPartialReportSaysSo(t *testing.T) {
	c := &scenarios.Comparison{Parts: []scenarios.PartState{{Name: "matrix", State: scenarios.PartInterrupted}, {Name: "herd", State: scenarios.PartLeftOut}}}
	text := written(t, func(w io.Writer) error { return WriteMarkdown(w, c) })
	require.Contains(t, text, "> **This report is partial.** It was interrupted; not complete: matrix.")
	require.Contains(t, text, "Left out on request: herd.")
}

func TestChangesAreTold(t *testing.T) {
	c := &scenarios.Comparison{Complete: true, Changes: &scenarios.Changes{Same: 7, Note: "a | b", Cells: []scenarios.Change{
		{Part: "matrix", Column: "pause", Design: "my/lock", Resource: "plain", What: "verdict", Old: "two-writers", New: "safe"}}}}
	text := written(t, func(w io.Writer) error { return WriteMarkdown(w, c) })
	require.Contains(t, text, `1 cell says something else than in the older report, 7 say the same. Mind: a \| b.`)
	require.Contains(t, text, "| matrix | pause | my/lock | plain | verdict | two-writers | **safe** |")
}

// Readings are computed: with other numbers they say something else.
func TestReadings(t *testing.T) {
	curve := func(rates ...int64) *scenarios.Curve {
		s := scenarios.CurveSeries{Design: "x"}
		for i, k := range rates {
			s.Points = append(s.Points, scenarios.CurvePoint{Size: int64(i) * 500, Share: scenarios.NewShare(k, 10)})
		}
		return &scenarios.Curve{Axis: "pause / TTL", Series: []scenarios.CurveSeries{s}}
	}
	require.Equal(t, "1 of 1 designs never let two write (pause / TTL up to 1).", curveReading(curve(0, 0, 0)))
	require.Equal(t, "0 of 1 designs never let two write (pause / TTL up to 1); half of the runs have two writers first at 0.5 (x).", curveReading(curve(0, 6, 10)))
	require.Equal(t, "0 of 1 designs never let two write (pause / TTL up to 1); 1 do even without the fault.", curveReading(curve(10, 10, 10)))

	m := &scenarios.SafetyMap{X: []int64{0, 10}, Y: []int64{0, 10}, Bounds: []scenarios.Bound{{Points: [][2]int64{{0, 5}, {10, 5}}}},
		Cells: []scenarios.Share{scenarios.NewShare(1, 8), scenarios.NewShare(0, 8), scenarios.NewShare(8, 8), scenarios.NewShare(8, 8)}}
	require.Equal(t, "two wrote in 3 of 4 cells, and in 1 of the 2 below the line from which theory has it possible", mapReading(m, false))

	require.Equal(t, "Of 3, 1 let two write without any fault and 1 with a single one; 1 withstood every single fault (c on plain), in 30 executions.",
		fewestReading([]scenarios.FewestCell{{Executions: 10}, {Executions: 10, TwoWriters: 1}, {Design: "c", Resource: "plain", Executions: 10, TwoWriters: -1}}))
}

func TestShare100(t *testing.T) {
	for rate, want := range map[float64]string{0: "0 %", 1: "100 %", 0.0001: "<0.1 %", 0.9999: ">99.9 %", 0.05: "5.0 %", 0.314: "31 %", 0.995: "99.5 %"} {
		require.Equal(t, want, share100(rate))
	}
}
