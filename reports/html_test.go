package reports

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"locklab/models"
	"locklab/scenarios"
	"locklab/sim"
)

// pageRun adds runs of a library scenario to a page. Empty names mean all.
func pageRun(t *testing.T, p *Page, scenario, design, resource string, seeds uint64) {
	t.Helper()
	s, err := scenarios.Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	pageRunOf(t, p, s, design, resource, seeds)
}

func pageRunOf(t *testing.T, p *Page, s *scenarios.Scenario, design, resource string, seeds uint64) {
	t.Helper()
	cases, err := scenarios.Cases(s, models.Designs(), models.Resources())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if design != "" && c.Design.Name != design || resource != "" && c.Resource.Name != resource {
			continue
		}
		r, err := scenarios.NewRunner(c)
		if err != nil {
			t.Fatal(err)
		}
		for seed := uint64(1); seed <= seeds; seed++ {
			res, err := r.Run(seed, sim.TraceRecord)
			if err != nil {
				t.Fatal(err)
			}
			p.Add(res)
		}
		r.Close()
	}
}

// pageOfPause is Kleppmann's story under a bare lease and under a fence.
func pageOfPause(t *testing.T) *Page {
	t.Helper()
	p := NewPage("")
	pageRun(t, p, "kleppmann/gc-pause", "redis/lua-release", "plain", 1)
	pageRun(t, p, "kleppmann/gc-pause", "redis/lua-token", "plain", 1)
	pageRun(t, p, "kleppmann/gc-pause", "redis/lua-token", "fenced", 1)
	if p.Len() != 3 {
		t.Fatalf("the page has %d stories, not 3", p.Len())
	}
	return p
}

func pageBytes(t *testing.T, p *Page) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := p.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("WriteTo = %d, %v; %d bytes were written", n, err, b.Len())
	}
	return b.Bytes()
}

func TestPageIsDeterministic(t *testing.T) {
	if a, b := pageBytes(t, pageOfPause(t)), pageBytes(t, pageOfPause(t)); !bytes.Equal(a, b) {
		t.Error("the same runs gave two different pages")
	}
	p := pageOfPause(t)
	if a, b := pageBytes(t, p), pageBytes(t, p); !bytes.Equal(a, b) {
		t.Error("writing a page twice gave two different files")
	}
}

func TestPageLoadsNothing(t *testing.T) {
	page := pageBytes(t, pageOfPause(t))
	if m := regexp.MustCompile(`(?i)\ssrc\s*=\s*["']|<link[^>]+href="http|@import|url\(\s*["']?http|\bfetch\(|XMLHttpRequest`).Find(page); m != nil {
		t.Errorf("the page would load something: %s", m)
	}
	for _, want := range []string{"default-src &#39;none&#39;", "script-src &#39;sha256-", "style-src &#39;sha256-"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the policy lacks %s", want)
		}
	}
}

// hostile is a text that would run a script if it were not escaped somewhere.
const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2"><!-- ' " & ` + "\u2028"

func hostilePage(t *testing.T) *Page {
	t.Helper()
	s, err := scenarios.Find("kleppmann/gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	s.Name, s.Title, s.Story = "a/"+hostile, hostile, hostile
	s.Questions, s.Source = []string{hostile}, []string{hostile + " javascript:alert(1)"}
	for i := range s.Expect {
		s.Expect[i].Why = hostile
	}
	p := NewPage("")
	pageRunOf(t, p, s, "redis/lua-token", "fenced", 1)
	return p
}

func TestPageEscapesTexts(t *testing.T) {
	page := string(pageBytes(t, hostilePage(t)))
	if n := strings.Count(page, "</script"); n != 2 {
		t.Errorf("%d script elements end in the page, not 2", n)
	}
	if strings.Contains(page, "<img") || strings.Contains(page, "<!--") {
		t.Error("a text became markup")
	}
	if !strings.Contains(page, "<title>&lt;/script&gt;") {
		t.Error("the title is not the scenario's, escaped")
	}
}

// pageStory returns the data of one story as the script reads it.
func pageStory(t *testing.T, p *Page, index int) (*storyData, func(int64) string) {
	t.Helper()
	page := string(pageBytes(t, p))
	_, rest, ok := strings.Cut(page, `id="locklab-data">`)
	text, _, end := strings.Cut(rest, "</script>")
	var d pageData
	if err := json.Unmarshal([]byte(text), &d); err != nil || !ok || !end {
		t.Fatalf("the page's data cannot be read: %v", err)
	}
	return d.Stories[index], func(n int64) string { return d.Texts[n] }
}

// nth reads a row whose trailing zeros are cut off.
func nth(row []int64, i int) int64 {
	if i < len(row) {
		return row[i]
	}
	return 0
}

func pageMarks(d *storyData, kind int64) (n int) {
	for _, m := range d.Marks {
		if nth(m, 2) == kind {
			n++
		}
	}
	return n
}

func TestPageShowsWhatMatters(t *testing.T) {
	p := pageOfPause(t)
	for _, c := range []struct {
		story          int
		stale, refused int
		verdict        string
	}{{0, 1, 0, "two-writers"}, {1, 1, 0, "two-writers"}, {2, 0, 1, "fenced"}} {
		d, text := pageStory(t, p, c.story)
		if s, r := pageMarks(d, markStale), pageMarks(d, markRefused); s != c.stale || r != c.refused {
			t.Errorf("story %d shows %d stale and %d refused writes, not %d and %d", c.story, s, r, c.stale, c.refused)
		}
		if got := text(int64(d.Verdict)); got != c.verdict {
			t.Errorf("story %d: verdict %s, not %s", c.story, got, c.verdict)
		}
		for _, f := range d.Findings {
			line := d.Lines[nth(f, 1)]
			if want := strings.ToUpper(text(nth(f, 0))) + ":"; !strings.HasPrefix(text(nth(line, 2)), want) {
				t.Errorf("story %d: the finding %s points to the line %q", c.story, want, text(nth(line, 2)))
			}
		}
	}
}

func TestPagePutsTokensOnArrows(t *testing.T) {
	d, text := pageStory(t, pageOfPause(t), 2)
	seen := map[string]bool{}
	for _, m := range d.Messages {
		if token := nth(m, 8); token != 0 {
			seen[text(nth(m, 5))+" "+string('0'+rune(token/10))+string('0'+rune(token%10))] = true
		}
	}
	for _, want := range []string{"granted 33", "granted 34", "write 1 33", "write 1 34"} {
		if !seen[want] {
			t.Errorf("no arrow %q among %v", want, seen)
		}
	}
}

func TestPageFoldsPolling(t *testing.T) {
	d, text := pageStory(t, pageOfPause(t), 0)
	if len(d.Folds) != 1 || nth(d.Folds[0], 3) < 30 {
		t.Fatalf("folds %v, not one that stands for the refused tries", d.Folds)
	}
	if got := text(nth(d.Folds[0], 4)); got != "more tries, refused" {
		t.Errorf("the fold says %q", got)
	}
	if n := len(d.Messages); n > 30 {
		t.Errorf("%d messages are drawn", n)
	}
}

// A report has a hundred stories in a page, so a story must be small.
func TestPageIsSmall(t *testing.T) {
	p := NewPage("")
	empty := len(pageBytes(t, p))
	for _, s := range []string{"kleppmann/gc-pause", "kleppmann/delayed-write", "kleppmann/fencing-read-modify-write"} {
		pageRun(t, p, s, "redis/lua-token", "", 5)
	}
	size := len(pageBytes(t, p)) - empty
	t.Logf("%d stories: %d bytes a story, and %d for the page", p.Len(), size/p.Len(), empty)
	if size/p.Len() > 4000 {
		t.Errorf("%d bytes a story", size/p.Len())
	}
}

func TestPageWithoutScenario(t *testing.T) {
	s, err := scenarios.Find("kleppmann/gc-pause")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := scenarios.Cases(s, models.Designs()[:1], models.Resources()[:1])
	if err != nil {
		t.Fatal(err)
	}
	c := cases[0]
	c.Scenario = nil
	r, err := scenarios.NewRunner(c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	res, err := r.Run(1, sim.TraceRecord)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := HTML(&b, []*scenarios.Result{res}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "<title>locklab</title>") {
		t.Error("a page without any title is not called locklab")
	}
	if got, want := Anchor(&c, 7), "#plan,"+c.Design.Name+","+c.Resource.Name+",7"; got != want {
		t.Errorf("Anchor = %s, want %s", got, want)
	}
}

func TestPageGivesClockStepsTheirSign(t *testing.T) {
	for text, want := range map[string]string{
		"wall clock steps by 12s": "wall clock steps by +12s", "wall clock steps by -3s": "wall clock steps by -3s",
		"clocks run 5 parts per billion fast": "clocks run 5 parts per billion fast",
	} {
		if got := withSign(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}
