package reports

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"locklab/scenarios"
)

// openIndex writes the page of a comparison to a file and opens it there.
func (b *tab) openIndex(c *scenarios.Comparison, fragment string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "index.html")
	if err := os.WriteFile(file, indexBytes(b.t, c), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Navigate("file://" + file + fragment))
	b.ready()
}

// ready waits until the script has built the page.
func (b *tab) ready() {
	b.t.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(`.entrance, .case`)))
}

// visit goes to another fragment of the page that is open.
func (b *tab) visit(fragment string) {
	b.t.Helper()
	b.moves(fmt.Sprintf(`location.hash = %q`, fragment))
}

// moves does something that changes the address, and waits until the page has
// followed it.
func (b *tab) moves(script string) {
	b.t.Helper()
	eval[any](b, `window.moved = false; addEventListener('hashchange', () => { window.moved = true; }, { once: true }); `+script+`; null`)
	for !eval[bool](b, `window.moved`) { // the tab's context has a deadline
		b.do(chromedp.Sleep(10 * time.Millisecond))
	}
}

// harmed is a cell of the small comparison in which two wrote.
func harmed(t *testing.T, c *scenarios.Comparison) *scenarios.MatrixCell {
	t.Helper()
	for i := range c.Matrix {
		if m := &c.Matrix[i]; m.Worst == "two-writers" && m.Story != "" && len(m.SavedBy) > 0 {
			return m
		}
	}
	t.Fatal("nothing is harmed in the small comparison")
	return nil
}

func cellFragment(m *scenarios.MatrixCell) string {
	return "#cell/" + m.Design + "," + m.Resource + "," + m.Family
}

// cellElement is the script that finds a cell's button in the matrix.
func cellElement(c *scenarios.Comparison, m *scenarios.MatrixCell) string {
	title := ""
	for _, f := range c.Families {
		if f.Name == m.Family {
			title = f.Title
		}
	}
	return fmt.Sprintf(`[...document.querySelectorAll('.cell')].find((el) => el.getAttribute('aria-label').startsWith(%q))`, m.Design+" on "+m.Resource+", "+title)
}

const pageWidth = `document.documentElement.scrollWidth`

func TestBrowserIndexAtBothWidthsAndThemes(t *testing.T) {
	b := newTab(t)
	c := smallComparison(t)
	cell := harmed(t, c)
	for _, width := range []int64{1440, 400} {
		for _, theme := range []string{"light", "dark"} {
			name := fmt.Sprintf("%d-%s", width, theme)
			b.look(width, 900, theme)
			if width == 1440 && theme == "light" {
				b.openIndex(c, "")
			} else {
				b.visit("#?")
			}
			b.shot("index-" + name)
			if n, cannot := eval[int](b, `document.querySelectorAll('.matrix .cell').length`), eval[int](b, `document.querySelectorAll('.matrix td .cannot').length`); n+cannot != len(c.Matrix) || cannot == 0 {
				t.Errorf("%s: %d cells and %d that cannot be, not %d", name, n, cannot, len(c.Matrix))
			}
			if wide := eval[int](b, pageWidth); int64(wide) > width {
				t.Errorf("%s: the entrance is %d pixels wide", name, wide)
			}
			// The head and the first column stay in sight when the matrix is scrolled.
			eval[any](b, `(() => { const s = document.querySelector('.matrix-scroll'); s.scrollIntoView(); s.scrollTo(300, 200); if (innerWidth > 1180) scrollBy(0, 200); })()`)
			b.shot("index-matrix-" + name)
			if top := eval[float64](b, `document.querySelector('.matrix thead th').getBoundingClientRect().top`); top < -1 || top > 200 {
				t.Errorf("%s: the head of the matrix is at %v", name, top)
			}
			if left := eval[float64](b, `document.querySelector('.matrix tbody th[scope=row]').getBoundingClientRect().left`); left < 0 || left > 40 {
				t.Errorf("%s: the first column is at %v", name, left)
			}
			b.visit(cellFragment(cell))
			b.shot("index-cell-" + name)
			if wide := eval[int](b, pageWidth); int64(wide) > width {
				t.Errorf("%s: the page of a cell is %d pixels wide", name, wide)
			}
			eval[any](b, `document.querySelector('.embedded').scrollIntoView()`)
			b.shot("index-story-" + name)
			if n := eval[int](b, `document.querySelectorAll('.drawing .lane').length`); n < 3 {
				t.Errorf("%s: the story has %d lanes", name, n)
			}
		}
	}
	if n := eval[int](b, `performance.getEntriesByType('resource').filter((r) => !r.name.startsWith('data:')).length`); n != 0 {
		t.Errorf("the page loaded %d things", n)
	}
}

func TestBrowserIndexClickShowsTheStory(t *testing.T) {
	b := newTab(t)
	c := smallComparison(t)
	m := harmed(t, c)
	story := c.Story(m.Story)
	b.look(1440, 900, "light")
	b.openIndex(c, "")
	eval[any](b, cellElement(c, m)+`.id = 'wanted'`)
	b.do(chromedp.Click(chromedp.CSS(`#wanted.two-writers`)), chromedp.WaitVisible(chromedp.CSS(`.case .drawing`)))
	if got := eval[string](b, `location.hash`); got != cellFragment(m) {
		t.Errorf("the address of the cell is %s", got)
	}
	b.visit(cellFragment(m) + "@1")
	page := eval[string](b, `document.querySelector('.case').textContent`)
	for what, want := range map[string]string{"verdict": m.Worst, "command": m.Command, "story's command": story.Command, "plan": story.Plan,
		"saver": m.SavedBy[0].Design + " on " + m.SavedBy[0].Resource} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the cell lacks its %s: %q", what, want)
		}
	}
	// The diagram is that of the other pages, with the same steps.
	steps := eval[int](b, `document.querySelectorAll('.line').length`)
	if b.step() != 0 || steps < 3 {
		t.Errorf("the address names step 1, and the slider stands at %d of %d", b.step(), steps)
	}
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	eval[any](b, `(() => { const s = document.getElementById('step'); s.value = 2; s.dispatchEvent(new Event('input')); })()`)
	if got, want := eval[string](b, `document.querySelector('.caption').textContent`), eval[string](b, `document.querySelectorAll('.line .words')[2].textContent`); !strings.Contains(got, want) || want == "" {
		t.Errorf("the slider shows %q, not %q", got, want)
	}
	if got := eval[string](b, `location.hash`); got != cellFragment(m)+"@3" {
		t.Errorf("the address of step 3 is %s", got)
	}
	// What would have saved you is a link; so is the next harm.
	eval[any](b, `document.querySelector('.saved a').click()`)
	b.do(chromedp.WaitVisible(chromedp.CSS(`.bound`)))
	if got := eval[string](b, `document.querySelector('.bound').textContent`); !strings.Contains(got, "none in ") || !strings.Contains(got, "below ") {
		t.Errorf("a cell without harm says %q", got)
	}
	if n := eval[int](b, `document.querySelectorAll('.drawing').length`); n != 0 {
		t.Error("a cell without harm shows a story")
	}
	b.do(chromedp.KeyEvent("n"), chromedp.WaitVisible(chromedp.CSS(`.case .drawing`)))
	if got := eval[string](b, `document.querySelector('.case .copy').click() || document.querySelector('.case .copy').textContent`); got == "" {
		t.Error("the copy button says nothing")
	}
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitVisible(chromedp.CSS(`.matrix`)))
}

func TestBrowserIndexFiltersAndSorts(t *testing.T) {
	b := newTab(t)
	c := smallComparison(t)
	b.look(1440, 900, "light")
	b.openIndex(c, "")
	rows := `[...document.querySelectorAll('.matrix tbody th[scope=row]')].map((el) => el.textContent)`
	all := len(eval[[]string](b, rows))
	set := func(id, value string) {
		eval[any](b, fmt.Sprintf(`(() => { const s = document.getElementById('filter-%s'); s.value = %q; s.dispatchEvent(new Event('change')); })()`, id, value))
	}
	set("family", "redis")
	set("resource", "plain")
	if got := eval[[]string](b, rows); len(got) != 2 || !strings.HasPrefix(got[0], "redis/") || !strings.HasSuffix(got[0], "plain") {
		t.Errorf("redis on plain is %q", got)
	}
	set("fault", "pause")
	if got := eval[int](b, `document.querySelectorAll('.matrix thead th').length`); got != 2 {
		t.Errorf("one family of faults makes %d columns", got)
	}
	if got := eval[string](b, `location.hash`); got != "#?family=redis&resource=plain&fault=pause" {
		t.Errorf("the address of the filters is %s", got)
	}
	b.moves(`history.back()`)
	if got := eval[string](b, `location.hash + document.getElementById('filter-fault').value + document.querySelectorAll('.matrix thead th').length`); got != fmt.Sprintf("#?family=redis&resource=plain%d", len(c.Families)+1) {
		t.Errorf("after going back: %s", got)
	}
	b.do(chromedp.Click(chromedp.CSS(`#clear`)))
	set("verdict", "two-writers")
	if n, dim := eval[int](b, `document.querySelectorAll('.matrix .cell.two-writers:not(.dim)').length`), eval[int](b, `document.querySelectorAll('.matrix .cell.two-writers.dim').length`); n == 0 || dim != 0 {
		t.Errorf("%d cells with two writers are shown, and %d dimmed", n, dim)
	}
	b.do(chromedp.Click(chromedp.CSS(`#clear`)), chromedp.KeyEvent("/"), chromedp.KeyEvent("zook"))
	if got := eval[[]string](b, rows); len(got) == 0 || len(got) == all || !strings.HasPrefix(got[0], "zookeeper/lock") {
		t.Errorf("searching for zook shows %q", got)
	}
	if got := eval[string](b, `document.activeElement.id + location.hash`); got != "search#?q=zook" {
		t.Errorf("while typing: %s", got)
	}
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.Click(chromedp.CSS(`#clear`)))
	set("sort", "worst")
	harm := eval[[]int](b, `[...document.querySelectorAll('.matrix tbody tr')].map((tr) => tr.querySelectorAll('.two-writers').length)`)
	for i := 1; i < len(harm); i++ {
		if harm[i] > harm[i-1] {
			t.Errorf("worst first, but the rows have %v cells with two writers", harm)
			break
		}
	}
	b.do(chromedp.Click(chromedp.CSS(`[data-sort="pause"]`)))
	if got := eval[string](b, `document.querySelector('[aria-sort]').textContent`); got != "pause" {
		t.Errorf("sorted by %s", got)
	}
	b.visit("#cell/no/such,thing,pause")
	if !eval[bool](b, `!document.querySelector('.banner[role=alert]').hidden`) {
		t.Error("an unknown address is not said to be one")
	}
}

func TestBrowserIndexByKeyboard(t *testing.T) {
	b := newTab(t)
	c := smallComparison(t)
	b.look(1440, 900, "light")
	b.openIndex(c, "")
	now := `document.activeElement.getAttribute('aria-label')`
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	first := eval[string](b, now)
	if !strings.Contains(first, " on ") {
		t.Fatalf("the arrow down goes to %q", first)
	}
	if tip := eval[string](b, `document.querySelector('.cell-tip').hidden ? '' : document.querySelector('.cell-tip').innerText`); !strings.Contains(tip, " runs") {
		t.Errorf("the cell in focus tells %q", tip)
	}
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowUp))
	if got := eval[string](b, now); got != first {
		t.Errorf("once around ends at %q, not %q", got, first)
	}
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	there := eval[string](b, now)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS(`.case`)))
	b.do(chromedp.KeyEvent(kb.Escape), chromedp.WaitVisible(chromedp.CSS(`.matrix`)))
	if got := eval[string](b, now); got != there {
		t.Errorf("Escape comes back to %q, not %q", got, there)
	}
	b.do(chromedp.KeyEvent("?"))
	if !eval[bool](b, `document.querySelector('dialog').open`) {
		t.Error("the key ? shows no keys")
	}
	b.shot("index-keys")
	b.do(chromedp.KeyEvent(kb.Escape))
	if eval[bool](b, `document.querySelector('dialog').open`) {
		t.Error("Escape leaves the keys open")
	}
}

func TestBrowserIndexKeepsHostileTextsHarmless(t *testing.T) {
	b := newTab(t)
	c := *smallComparison(t) // its scenario's title is evil already
	c.Designs = append([]scenarios.ComparedDesign(nil), c.Designs...)
	c.Designs[0].Summary, c.Designs[0].Source = hostile, hostile+" javascript:alert(1)"
	c.Complete = false
	c.Parts = append([]scenarios.PartState(nil), c.Parts...)
	c.Parts[1].State = scenarios.PartInterrupted
	c.Changes = &scenarios.Changes{Note: hostile, Cells: []scenarios.Change{{Part: "matrix", Column: "pause", Design: hostile, New: hostile}}}
	b.look(1440, 900, "dark")
	b.openIndex(&c, "")
	eval[any](b, `document.querySelectorAll('details').forEach((d) => { d.open = true; })`)
	b.shot("index-hostile")
	if eval[bool](b, `'hacked' in window`) {
		t.Error("a text ran as a script")
	}
	if got, want := eval[string](b, `document.querySelector('.scenario span').textContent`), evil; got != want {
		t.Errorf("the scenario's title reads %q, not %q", got, want)
	}
	if n := eval[int](b, `document.querySelectorAll('a[href^="javascript"], img[onerror], .table script').length`); n != 0 {
		t.Errorf("%d elements came from texts", n)
	}
	if got := eval[string](b, `document.querySelector('.banner:not([hidden])').textContent`); !strings.Contains(got, "partial") || !strings.Contains(got, "matrix") {
		t.Errorf("the banner of a partial report says %q", got)
	}
	if n := eval[int](b, `document.querySelectorAll('.figures img').length`); n == 0 {
		t.Error("no plot is shown")
	}
}

func TestBrowserIndexPrints(t *testing.T) {
	b := newTab(t)
	c := smallComparison(t)
	b.look(1440, 900, "dark")
	b.openIndex(c, "")
	for _, place := range []struct{ name, fragment string }{{"index-print", ""}, {"index-print-cell", cellFragment(harmed(t, c)) + "@2"}} {
		if place.fragment != "" {
			b.visit(place.fragment)
		}
		pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPrintBackground()))
		if err != nil || len(pdf) < 10_000 {
			t.Fatalf("printing %s gave %d bytes: %v", place.name, len(pdf), err)
		}
		if dir := os.Getenv("LOCKLAB_SHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, place.name+".pdf"), pdf, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
