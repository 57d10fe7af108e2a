package reports

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The tests below open pages in a real Chromium. They take seconds and a
// browser, so they run only on demand:
//
//	LOCKLAB_BROWSER=1 go test -run TestBrowser ./reports
//
// With LOCKLAB_SHOTS=DIR they leave screenshots there, to be looked at.

// chromium finds a browser. On a developer's machine the tests can do
// without; in CI they must not pass by not running.
func chromium(t *testing.T) string {
	t.Helper()
	if os.Getenv("LOCKLAB_BROWSER") == "" {
		t.Skip("set LOCKLAB_BROWSER=1 to run the browser tests (make browser does)")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no chromium found, and CI must run the browser tests: apt-get install chromium")
	}
	t.Skip("no chromium found; install it (Debian: apt-get install chromium) to run the browser tests")
	return ""
}

// tab is a browser tab that keeps what the page writes to its console.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	messages []string
}

// newTab starts a browser of its own. At the end of the test its console must
// have stayed empty.
func newTab(t *testing.T) *tab {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	ctx, endBrowser := chromedp.NewExecAllocator(ctx, opts...)
	ctx, endTab := chromedp.NewContext(ctx)
	b := &tab{t: t, ctx: ctx}
	console, heard := chromedp.Console(ctx), make(chan struct{})
	go func() {
		defer close(heard)
		for m, err := range console {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.messages = append(b.messages, m.String())
			b.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits until the browser is gone and its directory free
		endTab()
		endBrowser()
		stop()
		<-heard
		for _, m := range b.messages {
			t.Errorf("the page wrote to the console: %s", m)
		}
	})
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns what an expression of JavaScript is worth.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// look makes the tab so wide and high, and the theme light or dark.
func (b *tab) look(width, height int64, theme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// open writes the page to a file and opens it there, at a fragment.
func (b *tab) open(page *Page, fragment string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	if err := os.WriteFile(file, pageBytes(b.t, page), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.Navigate("file://" + file + fragment))
}

// shot keeps a screenshot where somebody asked for it.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("LOCKLAB_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) step() int {
	b.t.Helper()
	return eval[int](b, `+document.getElementById('step').value`)
}

const stalePage = "#kleppmann/gc-pause,redis/lua-token,plain,1"

// inSight tells whether an element is on the screen, covered by nothing, and
// of another colour than the ground it stands on.
const inSight = `((el) => {
  if (!el) return 'is missing';
  const box = el.getBoundingClientRect();
  if (box.width < 8 || box.height < 8) return 'is too small';
  if (box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight) return 'is off the screen: ' + JSON.stringify(box);
  const x = box.left + box.width / 2, y = box.top + box.height / 2;
  if (document.elementsFromPoint(x, y).some((e) => e.closest('footer, header'))) return 'is covered';
  for (let e = el; e instanceof Element; e = e.parentNode) if (getComputedStyle(e).opacity < 1) return 'is faded';
  const ground = getComputedStyle(document.body).backgroundColor, style = getComputedStyle(el);
  if (style.fill === ground && style.stroke === ground) return 'has the colour of the ground';
  return '';
})`

func TestBrowserShowsStaleAndRefused(t *testing.T) {
	b := newTab(t)
	page := pageOfPause(t)
	for _, width := range []int64{1440, 400} {
		for _, theme := range []string{"light", "dark"} {
			for _, c := range []struct{ mark, fragment string }{
				{"stale", stalePage}, {"refused", "#kleppmann/gc-pause,redis/lua-token,fenced,1"},
			} {
				name := fmt.Sprintf("%s at %d pixels, %s", c.mark, width, theme)
				b.look(width, 900, theme)
				b.open(page, c.fragment)
				b.shot(fmt.Sprintf("%s-%d-%s", c.mark, width, theme))
				eval[any](b, `document.querySelector('.line.`+c.mark+`').click()`)
				for what, selector := range map[string]string{"sign": ".mark." + c.mark + " .sign", "word": ".label." + c.mark} {
					if bad := eval[string](b, inSight+`(document.querySelector('.drawing `+selector+`'))`); bad != "" {
						t.Errorf("%s: the %s %s", name, what, bad)
					}
				}
				if got, want := eval[string](b, `document.querySelector('.label.`+c.mark+`').textContent`), strings.ToUpper(c.mark); !strings.HasPrefix(got, want) {
					t.Errorf("%s: the word is %q, not %s", name, got, want)
				}
				if wide := eval[int](b, `document.documentElement.scrollWidth`); int64(wide) > width {
					t.Errorf("%s: the page is %d pixels wide", name, wide)
				}
				b.shot(fmt.Sprintf("%s-%d-%s-step", c.mark, width, theme))
			}
		}
	}
	if n := eval[int](b, `performance.getEntriesByType('resource').filter((r) => !r.name.startsWith('data:')).length`); n != 0 {
		t.Errorf("the page loaded %d things", n)
	}
}

func TestBrowserStepsByKeyAndSlider(t *testing.T) {
	b := newTab(t)
	b.look(1440, 900, "light")
	b.open(pageOfPause(t), stalePage)
	steps := eval[int](b, `document.querySelectorAll('.line').length`)
	if b.step() != steps {
		t.Errorf("the page opens at step %d, not with the whole story (%d)", b.step(), steps)
	}
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowLeft))
	if b.step() != 1 {
		t.Errorf("after three steps on and one back: step %d, not 1", b.step())
	}
	if got := eval[string](b, `location.hash`); got != stalePage+"@2" {
		t.Errorf("the address is %s", got)
	}
	if n := eval[int](b, `document.querySelectorAll('.drawing .future').length`); n == 0 {
		t.Error("nothing of the future is faded")
	}
	b.do(chromedp.KeyEvent(kb.End))
	if n := eval[int](b, `document.querySelectorAll('.drawing .future').length`); b.step() != steps || n != 0 {
		t.Errorf("End shows step %d with %d faded things, not the whole story", b.step(), n)
	}
	b.do(chromedp.KeyEvent(kb.Home))
	eval[any](b, `(() => { const s = document.getElementById('step'); s.value = 4; s.dispatchEvent(new Event('input')); })()`)
	if got, want := eval[string](b, `document.querySelector('.caption').textContent`), eval[string](b, `document.querySelectorAll('.line .words')[4].textContent`); !strings.Contains(got, want) || want == "" {
		t.Errorf("the slider shows %q, not %q", got, want)
	}
	// A finding jumps to its moment, by key and by click.
	b.do(chromedp.KeyEvent("f"))
	if got := eval[string](b, `document.querySelector('.line[aria-current]').className`); !strings.Contains(got, "finding") {
		t.Errorf("the key f goes to a line %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS(`.finding:last-of-type`)))
	if got, want := eval[string](b, `document.querySelector('.line[aria-current]').dataset.step`), eval[string](b, `document.querySelector('.finding:last-of-type').dataset.line`); got != want {
		t.Errorf("the last finding goes to line %s, not %s", got, want)
	}
}

// struck lists the labels of a class through which a message's line goes.
const struck = `((cls) => [...document.querySelectorAll('.drawing .label.' + cls)].filter((el) => {
  const box = el.getBBox();
  return [...document.querySelectorAll('.drawing .message')].some((path) => {
    for (let at = 0; at <= path.getTotalLength(); at += 1.5) {
      const p = path.getPointAtLength(at);
      if (p.x > box.x && p.x < box.x + box.width && p.y > box.y + 2 && p.y < box.y + box.height - 2) return true;
    }
    return false;
  });
}).map((el) => el.textContent))`

func TestBrowserKeepsLabelsApart(t *testing.T) {
	b := newTab(t)
	for _, c := range []struct{ scenario, design, resource string }{
		{"kleppmann/delayed-write", "redis/lua-release", "plain"},
		{"kleppmann/gc-pause", "redis/lua-token", "plain"},
		{"lease/reordered-requests", "redis/blind-del", "plain"},
	} {
		p := NewPage("")
		pageRun(t, p, c.scenario, c.design, c.resource, 1)
		b.look(1440, 900, "light")
		b.open(p, "")
		b.shot("apart-" + strings.ReplaceAll(c.scenario, "/", "-"))
		for _, cls := range []string{"fold-label", "gaveUp"} {
			if bad := eval[[]string](b, struck+`('`+cls+`')`); len(bad) > 0 {
				t.Errorf("%s: a line goes through %q", c.scenario, bad)
			}
		}
		if twice := eval[[]string](b, `[...document.querySelectorAll('.label.time')].map((el) => el.textContent).filter((s, i, all) => all.indexOf(s) !== i)`); len(twice) > 0 {
			t.Errorf("%s: the axis writes %q twice", c.scenario, twice)
		}
	}
}

// Many findings are one button for each kind, which goes from one to the next.
func TestBrowserFoldsFindings(t *testing.T) {
	b := newTab(t)
	p := NewPage("")
	pageRun(t, p, "lease/concurrent-acquire", "none", "plain", 1)
	b.look(1440, 900, "light")
	b.open(p, "")
	b.shot("findings")
	texts := eval[[]string](b, `[...document.querySelectorAll('.finding')].map((el) => el.textContent)`)
	if len(texts) == 0 || !strings.Contains(texts[0], "overlap \u00d7") {
		t.Fatalf("the buttons say %q, not how many overlaps there are", texts)
	}
	kinds := eval[[]string](b, `[...document.querySelectorAll('.finding')].map((el) => el.textContent.match(/[a-z-]+/)[0])`)
	if seen := strings.Join(kinds, " "); strings.Count(seen, "overlap") != 1 {
		t.Errorf("a button for each of %s", seen)
	}
	line := func() string {
		b.do(chromedp.Click(chromedp.CSS(`.finding`)))
		return eval[string](b, `document.querySelector('.line[aria-current]').innerText`)
	}
	first, second := line(), line()
	if !strings.Contains(first, "OVERLAP: ") || !strings.Contains(second, "OVERLAP: ") || first == second {
		t.Errorf("two clicks go to %q and %q", first, second)
	}
	// Without a lock nobody believes anything, and three are more than both.
	drawn := eval[string](b, `document.querySelector('.layer-labels').textContent`)
	if strings.Contains(drawn, "believe") || !strings.Contains(drawn, "3 at ") {
		t.Errorf("the bands say %q", eval[[]string](b, `[...document.querySelectorAll('.label.warn')].map((el) => el.textContent)`))
	}
	if got := eval[string](b, `document.querySelector('.lock').textContent`); strings.Contains(got, "believed") {
		t.Errorf("the answer about no lock is %q", got)
	}
}

func TestBrowserShowsThatALockIsBroken(t *testing.T) {
	b := newTab(t)
	p := NewPage("")
	pageRun(t, p, "lease/service-restart", "redis/lua-token", "fenced", 1)
	b.look(1440, 900, "light")
	b.open(p, "")
	b.shot("broken")
	color := `getComputedStyle(document.querySelector('%s b')).color`
	if lock, verdict := eval[string](b, fmt.Sprintf(color, ".lock.broken")), eval[string](b, fmt.Sprintf(color, ".verdict.stuck")); lock != verdict {
		t.Errorf("a broken lock is %s, a bad verdict %s", lock, verdict)
	}
}

func TestBrowserOpensAtTheAddress(t *testing.T) {
	b := newTab(t)
	b.look(1440, 900, "dark")
	b.open(pageOfPause(t), stalePage+"@5")
	if b.step() != 4 {
		t.Errorf("the address names step 5, and the slider stands at %d", b.step())
	}
	eval[any](b, `(() => { const s = document.getElementById('choose-resource'); s.value = 'fenced'; s.dispatchEvent(new Event('change')); })()`)
	if got := eval[string](b, `location.hash`); got != "#kleppmann/gc-pause,redis/lua-token,fenced,1" {
		t.Errorf("after choosing fenced the address is %s", got)
	}
	if got := eval[string](b, `document.querySelector('.verdict b').textContent`); got != "fenced" {
		t.Errorf("the verdict is %s", got)
	}
	eval[any](b, `location.hash = '#no,such,story,1@3'`)
	if got := eval[int](b, `document.querySelectorAll('.drawing').length`); got != 1 {
		t.Errorf("an unknown address leaves %d drawings", got)
	}
}

func TestBrowserShowsDetails(t *testing.T) {
	b := newTab(t)
	b.look(1440, 900, "light")
	b.open(pageOfPause(t), stalePage)
	type point struct{ X, Y float64 }
	at := eval[point](b, `(() => { const r = document.querySelector('.token').getBoundingClientRect(); return { X: r.x + r.width / 2, Y: r.y + r.height / 2 }; })()`)
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at.X, at.Y))
	tip := func() string {
		return eval[string](b, `document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText`)
	}
	if got := tip(); !strings.Contains(got, "token 33") {
		t.Errorf("hovering over a token tells %q", got)
	}
	b.do(chromedp.MouseClickXY(at.X, at.Y), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 5, 5))
	if tip() == "" {
		t.Error("a tap does not keep the details")
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	if got := tip(); got != "" {
		t.Errorf("after Escape the details still say %q", got)
	}
	b.do(chromedp.KeyEvent("]"), chromedp.Sleep(100*time.Millisecond))
	if tip() == "" {
		t.Error("the key ] shows no details")
	}
	b.do(chromedp.KeyEvent("s"), chromedp.KeyEvent("+"))
	b.shot("to-scale")
	if eval[string](b, `document.getElementById('scale').getAttribute('aria-pressed')`) != "true" {
		t.Error("the key s does not draw time to scale")
	}
}

func TestBrowserThemeButton(t *testing.T) {
	b := newTab(t)
	b.look(1440, 900, "light")
	b.open(pageOfPause(t), stalePage)
	ground := `getComputedStyle(document.body).backgroundColor`
	light := eval[string](b, ground)
	b.do(chromedp.KeyEvent("t"), chromedp.KeyEvent("t"))
	if dark := eval[string](b, ground); dark == light {
		t.Errorf("both themes have the ground %s", dark)
	}
}

func TestBrowserKeepsHostileTextsHarmless(t *testing.T) {
	b := newTab(t)
	b.look(1440, 900, "light")
	b.open(hostilePage(t), "")
	eval[any](b, `document.querySelector('.about').open = true`)
	if got := eval[bool](b, `'hacked' in window`); got {
		t.Error("a text ran as a script")
	}
	if got := eval[string](b, `document.querySelector('h1').textContent`); got != hostile {
		t.Errorf("the title reads %q", got)
	}
	if n := eval[int](b, `document.querySelectorAll('a[href^="javascript"], img').length`); n != 0 {
		t.Errorf("%d elements came from texts", n)
	}
}

func TestBrowserPrints(t *testing.T) {
	b := newTab(t)
	b.look(1440, 900, "dark")
	b.open(pageOfPause(t), stalePage+"@3")
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4), chromedp.PDFPrintBackground()))
	if err != nil || len(pdf) < 10_000 {
		t.Fatalf("printing gave %d bytes: %v", len(pdf), err)
	}
	if dir := os.Getenv("LOCKLAB_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, "print.pdf"), pdf, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
