package reports

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"locklab/scenarios"
)

func indexBytes(t *testing.T, c *scenarios.Comparison) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, WriteIndex(&b, c))
	return b.Bytes()
}

// indexOf reads the data of a comparison's page as its script does.
func indexOf(t *testing.T, page []byte) *indexData {
	t.Helper()
	_, rest, ok := bytes.Cut(page, []byte(`id="locklab-data">`))
	text, _, end := bytes.Cut(rest, []byte("</script>"))
	require.True(t, ok && end)
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	require.NoError(t, err)
	var d indexData
	require.NoError(t, json.NewDecoder(zip).Decode(&d))
	return &d
}

func TestIndexHoldsTheComparison(t *testing.T) {
	c := smallComparison(t)
	d := indexOf(t, indexBytes(t, c))
	r := &d.Report
	require.Len(t, r.Cells, len(c.Matrix)-len(r.Cannot))
	require.NotEmpty(t, r.Cannot, "redis has no replica to fail over to")
	require.Len(t, r.Told, len(c.Stories))
	require.Len(t, d.Stories, len(c.Stories), "each story is drawn once")
	require.Zero(t, r.NotDrawn)
	require.Len(t, r.Fewest, len(c.Fewest))
	require.Len(t, r.Scenarios, len(c.Scenarios))
	at, stories := 0, 0
	for i := range c.Matrix {
		m := &c.Matrix[i]
		if !m.Possible {
			continue
		}
		cell := &r.Cells[at]
		at++
		pair := r.Pairs[cell.Pair]
		require.Equal(t, m.Design, r.Designs[pair[0]].Name)
		require.Equal(t, m.Resource, r.Resources[pair[1]].Name)
		require.Equal(t, m.Family, r.Faults[cell.Fault].Name)
		require.Equal(t, m.Worst, d.Texts[cell.Worst])
		require.Equal(t, m.Command, d.Texts[cell.Command])
		if m.Story == "" {
			require.Zero(t, cell.Story)
			continue
		}
		// The story that is drawn is the cell's, and shows the cell's verdict.
		stories++
		told := &r.Told[cell.Story-1]
		require.Equal(t, m.Story, told.ID)
		drawn := d.Stories[told.Drawn-1]
		require.Equal(t, m.Design, d.Texts[drawn.Design])
		require.Equal(t, m.Worst, d.Texts[drawn.Verdict])
		require.Equal(t, "locklab replay stories/"+m.Story+".yaml", d.Texts[drawn.Command])
		for k, s := range m.SavedBy {
			saver := r.Pairs[cell.Saved[k][0]]
			require.Equal(t, s.Design, r.Designs[saver[0]].Name)
			require.Equal(t, s.Resource, r.Resources[saver[1]].Name)
		}
	}
	require.NotZero(t, stories)
}

func TestIndexIsDeterministic(t *testing.T) {
	c := smallComparison(t)
	many := indexBytes(t, c)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.True(t, bytes.Equal(many, indexBytes(t, c)), "the same comparison gave two different pages")
}

func TestIndexEscapesAndLoadsNothing(t *testing.T) {
	c := *smallComparison(t)
	c.Designs = append([]scenarios.ComparedDesign(nil), c.Designs...)
	c.Designs[0].Summary = hostile + "\n|"
	page := indexBytes(t, &c)
	require.Equal(t, 2, bytes.Count(page, []byte("</script")))
	require.NotContains(t, string(page), "<script>window.hacked")
	require.NotContains(t, string(page), "alert(1)")
	require.Equal(t, hostile+"\n|", indexOf(t, page).Report.Designs[0].Summary, "no text is changed")
	require.Nil(t, regexp.MustCompile(`(?i)\ssrc\s*=\s*["']|<link[^>]+href="http|@import|url\(\s*["']?http|\bfetch\(|XMLHttpRequest|innerHTML`).Find(page))
	require.Contains(t, string(page), "default-src &#39;none&#39;")
}

// The page of the default comparison has about a thousand stories and must stay
// below 5 MB, so a story may take 4 kB of it; that of this one has fewer to
// share the scripts with.
func TestIndexIsSmall(t *testing.T) {
	c := smallComparison(t)
	page, bare := len(indexBytes(t, c)), len(pageCSS+indexCSS+pageJS+indexJS)
	t.Logf("%d stories: %d bytes, %d of them script and style", len(c.Stories), page, bare)
	require.Less(t, (page-bare)/len(c.Stories), 4000)
}

func TestIndexRefusesAStoryThatDoesNotRepeat(t *testing.T) {
	c := *smallComparison(t)
	c.Stories = append([]scenarios.Story(nil), c.Stories...)
	s := &c.Stories[len(c.Stories)-1]
	s.Plan = regexp.MustCompile(`trace_hash: "\w+"`).ReplaceAllString(s.Plan, `trace_hash: "0123456789abcdef"`)
	err := WriteIndex(&bytes.Buffer{}, &c)
	require.ErrorContains(t, err, "the plan says 0123456789abcdef")
	require.False(t, strings.Contains(err.Error(), "\n"))
}

func TestIndexOfNothing(t *testing.T) {
	c, err := scenarios.NewComparison(scenarios.CompareSpec{Seed: 1, Designs: []string{"none"}}, nil)
	require.NoError(t, err)
	d := indexOf(t, indexBytes(t, c))
	require.Empty(t, d.Report.Cells)
	require.Empty(t, d.Stories)
	require.False(t, d.Report.Complete)
}
