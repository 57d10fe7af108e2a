'use strict';

// The script of every locklab page. It reads the stories from the JSON beside
// it (html_data.go describes the rows), builds the page inside #locklab and
// draws one story at a time. On the page of a comparison it is only the viewer:
// index.js says where it stands and which story it shows. It uses no library
// and loads nothing.
//
//   1. Data       rows of numbers become objects
//   2. Words      times, lengths, names for people
//   3. Elements   small helpers for HTML and SVG
//   4. Skeleton   the page without a story
//   5. Chooser    which story; the address after the #
//   6. Layout     time to y, lanes to x
//   7. Drawing    bars, messages, marks, labels
//   8. Steps      what is past, present and yet to come
//   9. Details    what hover, tap and keys show of one thing
//  10. Controls   keys, zoom, theme, print
//  11. Start      alone, or inside another page

(async function () {

// ---------------------------------------------------------------- 1. Data

// The page is the viewer's own, or a host's, which then gives it an element to
// stand in and the addresses of its steps.
const host = { root: document.getElementById('locklab'), embedded: false, address: null };
const written = document.getElementById('locklab-data');
const data = written.type === 'application/json' ? JSON.parse(written.textContent) : await unzipped(written.textContent);

// unzipped reads data that were compressed with gzip and written in base64.
async function unzipped(base64) {
  if (!window.DecompressionStream) host.root.textContent = 'This page needs a browser of 2023 or later; report.md beside it says the same in words.';
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

const text = (n) => data.texts[n || 0];

const ROLE = { client: 0, lock: 1, server: 2, grants: 3 };
const BAR = { belief: 0, grant: 1, stop: 2, stall: 3, down: 4, fault: 5 };
const FLAG = { reply: 1, lost: 2, held: 4, nobody: 8, timedOut: 16, refused: 32, twice: 64 };
const MARK = { read: 1, write: 2, refused: 3, stale: 4, enter: 5, fault: 6, gaveUp: 7, crash: 8, start: 9, clock: 10, closed: 11, foreign: 12, note: 13 };
const LINE = ['plain', 'fault', 'unknown', 'refused', 'stale', 'finding', 'elided'];

// unpack turns the rows of a story into objects. Cells cut off at the end of a
// row are 0; what is written plus one becomes -1 where it is missing.
function unpack(story) {
  const rows = (list, make) => (list || []).map((r) => make((i) => r[i] || 0));
  let now = 0;
  const times = story.times.map((d) => (now += d));
  return {
    ...story,
    times,
    scenario: data.scenarios[story.scenario],
    design: text(story.design), resource: text(story.resource),
    verdict: text(story.verdict), lock: text(story.lock),
    lanes: rows(story.lanes, (c) => ({ name: text(c(0)), role: c(1), client: c(2) - 1 })),
    bars: rows(story.bars, (c) => ({ lane: c(0), kind: c(1), from: c(2), to: c(3) - 1, label: text(c(4)), client: c(5) - 1, token: c(6) })),
    messages: rows(story.messages, (c) => ({ from: c(0), to: c(1), sent: c(2), ended: c(3) - 1, flags: c(4), short: text(c(5)), text: text(c(6)), client: c(7) - 1, token: c(8) })),
    marks: rows(story.marks, (c) => ({ lane: c(0) - 1, at: c(1), kind: c(2), label: text(c(3)), client: c(4) - 1 })),
    folds: rows(story.folds, (c) => ({ lane: c(0), from: c(1), to: c(2), count: c(3), label: text(c(4)), client: c(5) - 1 })),
    clocks: rows(story.clocks, (c) => ({ lane: c(0), at: c(1), wall: c(2), mono: c(3) })),
    lines: rows(story.lines, (c) => ({ at: c(0), mark: LINE[c(1)], text: text(c(2)), local: text(c(3)), lane: c(4) - 1 })),
    findings: rows(story.findings, (c) => ({ kind: text(c(0)), line: c(1) })),
    witnesses: rows(story.witnesses, (c) => ({ text: text(c(0)), occurred: c(1) === 1 })),
    notes: (story.notes || []).map(text),
  };
}

// --------------------------------------------------------------- 2. Words

// Times are cut to the millisecond, not rounded, as in the texts of the story.
function seconds(ns) {
  const ms = Math.floor(ns / 1e6);
  return Math.floor(ms / 1000) + '.' + String(ms % 1000).padStart(3, '0');
}

function length(ns) {
  if (ns < 1e7) return (ns / 1e6).toFixed(1) + ' ms';
  if (ns < 1e9) return Math.round(ns / 1e6) + ' ms';
  return (ns / 1e9).toFixed(ns < 1e10 ? 2 : 1) + ' s';
}

function signed(us) { return (us < 0 ? '\u2212' : '+') + seconds(Math.abs(us) * 1000) + ' s'; }

const VERDICT = {
  'two-writers': ['stale', 'two owners wrote'],
  'lost-update': ['stale', 'an update was lost'],
  'stuck': ['stuck', 'somebody could not go on'],
  'vacuous': ['hollow', 'what the scenario is about did not happen'],
  'fenced': ['refused', 'the resource refused, and nothing was harmed'],
  'safe': ['write', 'no harm was found'],
};
const LOCK = {
  kept: 'it kept its promise',
  overlap: 'more than one believed at once',
  broken: 'it broke its promise',
};

// ------------------------------------------------------------ 3. Elements

function fill(el, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (value === true) el.setAttribute(name, '');
    else if (value !== false && value != null) el.setAttribute(name, value);
  }
  for (const c of children.flat(3)) if (c != null && c !== false) el.append(c);
  return el;
}
const refill = (el, ...children) => { el.replaceChildren(); fill(el, null, children); };
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// shape draws the sign of a mark around a point. Every kind has a shape of its
// own, so that no colour is needed to tell them apart.
function shape(kind, x, y, r = 7) {
  const path = (d, cls) => s('path', { d, class: cls });
  const diamond = `M${x} ${y - r * 1.35}L${x + r * 1.35} ${y}L${x} ${y + r * 1.35}L${x - r * 1.35} ${y}Z`;
  const cross = `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
  switch (kind) {
    case 'read': return s('circle', { cx: x, cy: y, r: r * 0.62, class: 'sign hollow' });
    case 'write': return s('circle', { cx: x, cy: y, r: r * 0.9, class: 'sign solid' });
    case 'enter': return path(`M${x - r} ${y + r * 0.8}L${x} ${y - r}L${x + r} ${y + r * 0.8}Z`, 'sign hollow');
    case 'refused': return s('rect', { x: x - r, y: y - r, width: 2 * r, height: 2 * r, class: 'sign hollow thick' });
    case 'stale': return path(diamond, 'sign stale');
    case 'foreign': return s('g', {}, path(diamond, 'sign stale'), path(`M${x - r * 0.5} ${y}H${x + r * 0.5}`, 'sign cut'));
    case 'fault': return path(`M${x + r * 0.2} ${y - r * 1.2}L${x - r * 0.8} ${y + r * 0.2}H${x}L${x - r * 0.2} ${y + r * 1.2}L${x + r * 0.8} ${y - r * 0.2}H${x}Z`, 'sign fault');
    case 'lost': case 'crash': return path(cross, 'sign cross');
    case 'start': return path(`M${x - r * 0.7} ${y - r}L${x + r} ${y}L${x - r * 0.7} ${y + r}Z`, 'sign solid');
    case 'gaveUp': case 'unknown': return s('g', {}, s('circle', { cx: x, cy: y, r: r, class: 'sign hollow' }),
      s('text', { x, y: y + r * 0.55, class: 'in-sign', 'font-size': r * 1.6 }, '?'));
    case 'clock': return s('g', {}, s('circle', { cx: x, cy: y, r, class: 'sign hollow' }), path(`M${x} ${y - r * 0.6}V${y}H${x + r * 0.5}`, 'sign line'));
    case 'closed': return path(`M${x - r} ${y}H${x - r * 0.3}M${x + r * 0.3} ${y}H${x + r}M${x - r * 0.5} ${y + r * 0.7}L${x + r * 0.5} ${y - r * 0.7}`, 'sign line');
    case 'finding': return path(`M${x - r * 0.7} ${y + r * 1.1}V${y - r}L${x + r} ${y - r * 0.4}L${x - r * 0.7} ${y + r * 0.2}`, 'sign stale');
    case 'stuck': return path(`M${x - r * 0.7} ${y - r}V${y + r}M${x + r * 0.7} ${y - r}V${y + r}`, 'sign cross');
    default: return s('circle', { cx: x, cy: y, r: r * 0.6, class: 'sign hollow' });
  }
}
const icon = (kind) => s('svg', { class: 'icon', viewBox: '-11 -11 22 22', width: 16, height: 16, 'aria-hidden': 'true' }, shape(kind, 0, 0));

const MARK_NAME = Object.fromEntries(Object.entries(MARK).map(([name, n]) => [n, name]));

// ------------------------------------------------------------ 4. Skeleton

const ui = {};
const view = { story: null, step: -1, zoom: 1, scaled: false, items: [], geometry: null };

function build() {
  host.root.classList.add('viewer', host.embedded ? 'embedded' : 'whole');
  ui.title = h('h1');
  ui.choosers = h('div', { class: 'choosers' });
  ui.answers = h('div', { class: 'answers' });
  ui.findings = h('div', { class: 'findings', role: 'group', 'aria-label': 'Findings: each jumps to its moment' });
  ui.about = h('details', { class: 'about' });
  ui.grid = h('details', { class: 'grid' });
  ui.theme = ui.theme || themeButton();
  ui.pane = h('div', { class: 'pane', tabindex: '0', role: 'region', 'aria-label': 'Space-time diagram' });
  ui.lanes = h('div', { class: 'lane-heads', 'aria-hidden': 'true' });
  ui.canvas = h('div', { class: 'canvas' });
  ui.pane.append(ui.lanes, ui.canvas);
  ui.lines = h('ol', { class: 'lines' });
  ui.caption = h('p', { class: 'caption', 'aria-live': 'polite' });
  ui.slider = h('input', { type: 'range', id: 'step', min: 0, value: 0, 'aria-label': 'Step of the story', oninput: () => goto(sliderStep()) });
  ui.play = h('button', { type: 'button', onclick: togglePlay, title: 'Play (space)' });
  ui.tip = h('div', { class: 'tip', role: 'tooltip', id: 'tip', hidden: true });
  ui.scale = h('button', { type: 'button', class: 'quiet', id: 'scale', 'aria-pressed': 'false', onclick: toggleScale, title: 'Draw time to scale (s)' }, 'time to scale');
  ui.footer = h('footer', {},
    h('div', { class: 'controls' },
      h('button', { type: 'button', id: 'previous', onclick: () => move(-1), title: 'Back (\u2190)', 'aria-label': 'Step back' }, '\u25c0'),
      ui.play,
      h('button', { type: 'button', id: 'next', onclick: () => move(1), title: 'On (\u2192)', 'aria-label': 'Step on' }, '\u25b6'),
      ui.slider),
    ui.caption);
  host.root.replaceChildren(
    h('header', {},
      !host.embedded && h('div', { class: 'top' }, ui.title, ui.choosers),
      h('div', { class: 'results' }, ui.answers, ui.findings),
      h('div', { class: 'more' }, ui.about, ui.grid)),
    h('main', {},
      h('section', { class: 'diagram', 'aria-label': 'Diagram' },
        h('div', { class: 'tools' },
          h('button', { type: 'button', class: 'quiet', id: 'zoom-out', onclick: () => zoom(1 / 1.25), title: 'Smaller (\u2212)', 'aria-label': 'Smaller' }, '\u2212'),
          h('button', { type: 'button', class: 'quiet', id: 'zoom-in', onclick: () => zoom(1.25), title: 'Larger (+)', 'aria-label': 'Larger' }, '+'),
          ui.scale, legend(), !host.embedded && ui.theme),
        ui.pane),
      h('section', { class: 'story', 'aria-label': 'Story' }, h('h2', {}, 'What happens'), ui.lines)),
    ui.footer,
    ui.tip);
  showPlaying(false);
}

function legend() {
  const entry = (sign, words) => h('li', {}, sign, ' ', words);
  const swatch = (cls) => s('svg', { class: 'icon', viewBox: '0 0 22 22', width: 16, height: 16, 'aria-hidden': 'true' }, s('rect', { x: 4, y: 1, width: 14, height: 20, class: cls }));
  const arrow = (cls) => s('svg', { class: 'icon wide', viewBox: '0 0 34 22', width: 25, height: 16, 'aria-hidden': 'true' }, s('path', { d: 'M1 11H30', class: 'message ' + cls }), s('path', { d: 'M33 11L24 7V15Z', class: 'head ' + cls }));
  return h('details', { class: 'legend' }, h('summary', {}, 'Signs and keys'),
    h('ul', {},
      entry(icon('read'), 'a read'), entry(icon('write'), 'a write, accepted; its value beside it'),
      entry(icon('refused'), 'REFUSED by the resource'), entry(icon('stale'), 'STALE: accepted, although a later owner had been at work'),
      entry(icon('enter'), 'a client leaves its mark'), entry(icon('foreign'), 'hits somebody else\u2019s lock'),
      entry(icon('lost'), 'a message is lost; a process crashes'), entry(icon('unknown'), 'gives up: outcome unknown'),
      entry(icon('fault'), 'a fault strikes'), entry(icon('finding'), 'a finding'),
      entry(arrow('c0'), 'a request'), entry(arrow('c0 reply'), 'its answer'),
      entry(swatch('bar grant c0'), 'the lock service\u2019s grant'), entry(swatch('bar belief c0'), 'a client believes that it holds the lock'),
      entry(swatch('bar stop'), 'paused or suspended'), entry(swatch('band'), 'more than one at once'),
      entry(h('span', { class: 'token-key' }, '33'), 'a fencing token')),
    h('p', {}, h('kbd', {}, '\u2190'), h('kbd', {}, '\u2192'), ' step, ', h('kbd', {}, 'Home'), h('kbd', {}, 'End'), ' first and all, ',
      h('kbd', {}, 'space'), ' play, ', h('kbd', {}, 'f'), ' next finding, ', h('kbd', {}, '['), h('kbd', {}, ']'), ' details one by one, ',
      h('kbd', {}, '+'), h('kbd', {}, '\u2212'), ' zoom, ', h('kbd', {}, 's'), ' time to scale, ', h('kbd', {}, 't'), ' theme. Time runs downward; a torn line is a silence left out.'));
}

// ------------------------------------------------------------- 5. Chooser

const parts = (story) => [text(data.scenarios[story.scenario].name), text(story.design), text(story.resource), story.seed];

function anchor(story, step) {
  const path = parts(story).map((p) => encodeURIComponent(p).replace(/%2F/g, '/')).join(',');
  return '#' + path + (step >= 0 ? '@' + (step + 1) : '');
}

// fromAddress finds the story and the step that the address names.
function fromAddress() {
  const [path, step] = location.hash.slice(1).split('@');
  let wanted = [];
  try { wanted = path.split(',').map(decodeURIComponent); } catch (e) { /* a broken address names nothing */ }
  const found = data.stories.findIndex((story) => parts(story).every((p, i) => p === wanted[i]));
  return { index: Math.max(found, 0), step: found >= 0 && step > 0 ? step - 1 : -1 };
}

function openAddress() {
  const { index, step } = fromAddress();
  open(index);
  goto(step);
}

function open(index) {
  if (view.index === index) return;
  view.index = index;
  view.story = unpack(data.stories[index]);
  view.step = -1;
  const story = view.story, title = text(story.scenario.title);
  if (!host.embedded) document.title = (title || data.title) + ': ' + story.design + ', ' + story.resource;
  ui.title.textContent = title || data.title;
  if (!host.embedded) showChoosers();
  showAnswers(story);
  showAbout(story);
  showGrid();
  showLines(story);
  ui.slider.max = story.lines.length;
  draw();
}

// pick opens the story that has the chosen value and else is most like the
// present one.
function pick(dimension, value) {
  const now = parts(data.stories[view.index]);
  let best = -1, bestScore = -1;
  data.stories.forEach((story, i) => {
    const p = parts(story);
    if (p[dimension] !== value) return;
    const score = p.reduce((sum, v, k) => sum + (v === now[k] ? [8, 4, 2, 1][k] : 0), 0);
    if (score > bestScore) [best, bestScore] = [i, score];
  });
  if (best >= 0) { open(best); goto(-1); }
}

function showChoosers() {
  const now = parts(data.stories[view.index]);
  const names = ['scenario', 'design', 'resource', 'seed'];
  const inScenario = data.stories.map(parts).filter((p) => p[0] === now[0]);
  refill(ui.choosers, ...names.map((name, k) => {
    const values = [...new Set((k === 0 ? data.stories.map(parts) : inScenario).map((p) => p[k]))];
    if (values.length < 2) return h('span', { class: 'chosen' }, h('span', { class: 'what' }, name), ' ', h('b', {}, now[k]));
    const select = h('select', { id: 'choose-' + name, onchange: () => pick(k, select.value) },
      values.map((v) => h('option', { value: v, selected: v === now[k] }, v)));
    return h('label', {}, h('span', { class: 'what' }, name), ' ', select);
  }));
}

function showGrid() {
  const now = parts(data.stories[view.index]);
  const same = data.stories.filter((story) => parts(story)[0] === now[0] && story.seed === now[3]);
  ui.grid.hidden = host.embedded || same.length < 2;
  if (ui.grid.hidden) return;
  const values = (k) => [...new Set(same.map((story) => parts(story)[k]))];
  const cell = (design, resource) => {
    const story = same.find((x) => text(x.design) === design && text(x.resource) === resource);
    if (!story) return h('td', { class: 'none', title: 'cannot work together, or not in this page' }, '\u2013');
    const current = story === data.stories[view.index];
    const go = (e) => { e.preventDefault(); open(data.stories.indexOf(story)); goto(-1); };
    return h('td', {}, h('a', { href: anchor(story, -1), onclick: go, 'aria-current': current ? 'true' : null },
      icon((VERDICT[text(story.verdict)] || ['hollow'])[0]), ' ', text(story.verdict)));
  };
  refill(ui.grid, h('summary', {}, 'All ' + same.length + ' runs of this scenario'),
    h('div', { class: 'scroll' }, h('table', {},
      h('thead', {}, h('tr', {}, h('th', {}), values(2).map((r) => h('th', { scope: 'col' }, r)))),
      h('tbody', {}, values(1).map((d) => h('tr', {}, h('th', { scope: 'row' }, d), values(2).map((r) => cell(d, r))))))));
}

function showAnswers(story) {
  const [sign, words] = VERDICT[story.verdict] || ['hollow', ''];
  const lockWords = story.lock === 'overlap' && lockless(story) ? 'there was none, and more than one was at work' : LOCK[story.lock] || '';
  const e = story.expected;
  const differs = e && e[3] !== 1;
  refill(ui.answers, 
    h('span', { class: 'answer verdict ' + story.verdict }, icon(sign), ' ', h('b', {}, story.verdict), h('span', { class: 'words' }, ' ' + words)),
    h('span', { class: 'answer lock ' + story.lock }, 'lock: ', h('b', {}, story.lock), h('span', { class: 'words' }, ' ' + lockWords)),
    differs && h('span', { class: 'answer differs' }, 'expected ', h('b', {}, [text(e[0]), text(e[1])].filter(Boolean).join(', lock '))));
  const kinds = new Map(); // kind: its findings, in the story's order
  story.findings.forEach((f, i) => kinds.set(f.kind, [...(kinds.get(f.kind) || []), { ...f, number: i + 1 }]));
  refill(ui.findings, ...[...kinds].map(([kind, list]) => findingButton(story, kind, list)));
  ui.findings.hidden = story.findings.length === 0;
}

// lockless says whether nobody ever believed that they held a lock, for there was none.
const lockless = (story) => story.bars.some((b) => b.kind === BAR.belief && b.label.startsWith('at work'));

// findingButton stands for the findings of a kind. A click goes to the first of
// them, the next one to the second, and so on round.
function findingButton(story, kind, list) {
  const line = (f) => story.lines[f.line] || { text: '', at: 0 };
  const many = list.length > 1, when = h('span', { class: 'when' });
  const number = h('span', { class: 'number' });
  const button = h('button', { type: 'button', class: 'finding', onclick: () => {
    const now = list.findIndex((f) => f.line === view.step);
    show((now + 1) % list.length);
    goto(list[(now + 1) % list.length].line);
  } }, number, ' ', kind, many && h('b', { class: 'count' }, ' \u00d7' + list.length), ' ', when);
  const show = (i) => {
    number.textContent = list[i].number;
    when.textContent = seconds(story.times[line(list[i]).at]) + ' s';
    button.setAttribute('data-line', list[i].line);
    button.title = (many ? `${i + 1} of ${list.length}; click for the next. ` : '') + line(list[i]).text;
  };
  show(0);
  return button;
}

// linked makes links of the addresses in a text. Following one is the reader's
// choice; the page itself loads nothing.
function linked(words) {
  return words.split(/(https?:\/\/[^\s<>"']+)/).map((part, i) => i % 2 ? h('a', { href: part, rel: 'noopener noreferrer' }, part) : part);
}

function showAbout(story) {
  const sc = story.scenario;
  const list = (title, items) => items && items.length > 0 && [h('h3', {}, title), h('ul', {}, items)];
  const paragraphs = text(sc.story).split(/\n\s*\n/).filter((p) => p.trim());
  refill(ui.about, h('summary', {}, 'About this run'),
    h('div', { class: 'columns' },
      paragraphs.map((p) => h('p', {}, p)),
      story.expected && text(story.expected[2]) && [h('h3', {}, story.expected[3] === 1 ? 'Why, as expected' : 'What was expected, and why'), h('p', {}, text(story.expected[2]))],
      list('Did it happen?', story.witnesses.map((w) => h('li', {}, w.text + ': ' + (w.occurred ? 'yes' : 'NO')))),
      list('Questions', (sc.questions || []).map((q) => h('li', {}, text(q)))),
      list('Sources', (sc.sources || []).map((q) => h('li', {}, linked(text(q))))),
      h('h3', {}, 'Repeat it'), h('p', {}, h('code', {}, text(story.command))), h('p', { class: 'small' }, 'trace ' + story.hash),
      story.notes.map((n) => h('p', { class: 'small' }, n))));
}

const LINE_SIGN = { fault: 'fault', unknown: 'unknown', refused: 'refused', stale: 'stale', finding: 'finding' };

function showLines(story) {
  refill(ui.lines, ...story.lines.map((l, i) => h('li', {},
    h('button', { type: 'button', class: 'line ' + l.mark, 'data-step': i, onclick: () => goto(i) },
      h('span', { class: 'when' }, seconds(story.times[l.at])),
      h('span', { class: 'sign-box' }, LINE_SIGN[l.mark] ? icon(LINE_SIGN[l.mark]) : ''),
      h('span', { class: 'words' }, l.text, l.local && h('i', { class: 'local' }, ' ' + l.local))))));
}

// -------------------------------------------------------------- 6. Layout

const SILENCE = 5e8; // ns: a longer gap is torn

// A gap grows with the logarithm of its length: a millisecond is 18 pixels and
// every factor of ten adds 7, so that latencies can be read beside leases.
function gapHeight(ns) {
  return Math.min(54, Math.max(8, 18 + 7 * Math.log10(Math.max(ns, 1) / 1e6)));
}

function layout(story, width, height) {
  const g = { narrow: width < 620 };
  g.font = g.narrow ? 10.5 : 12;
  g.gutter = g.narrow ? 54 : 74;
  g.right = g.narrow ? 74 : 128;
  g.top = 40;
  const n = story.lanes.length, inset = g.narrow ? 22 : 36;
  const room = width - g.gutter - inset - g.right;
  g.spacing = n > 1 ? Math.min(300, Math.max(g.narrow ? 46 : 60, room / (n - 1))) : 0;
  g.x = story.lanes.map((_, i) => g.gutter + inset + i * g.spacing);
  g.width = Math.max(width, g.gutter + inset + (n - 1) * g.spacing + g.right);
  g.network = g.x[0] + g.spacing / 2; // where things of nobody's lane are drawn
  g.laneX = (lane) => lane < 0 ? g.network : g.x[lane];
  g.y = [];
  const end = story.times[story.times.length - 1] || 1;
  const gaps = story.times.map((t, i) => i > 0 ? gapHeight(t - story.times[i - 1]) : 0);
  const total = gaps.reduce((sum, gap) => sum + gap, 0);
  const stretch = view.zoom * Math.min(1.5, Math.max(1, (height - g.top - 56) / (total || 1))); // a short story fills the pane
  let y = g.top + 16;
  story.times.forEach((t, i) => {
    if (view.scaled) { g.y.push(g.top + 16 + 1500 * view.zoom * t / end); return; }
    y += gaps[i] * stretch;
    g.y.push(y);
  });
  g.bottom = (g.y[g.y.length - 1] || y) + 10;
  g.height = g.bottom + 24;
  return g;
}

// ------------------------------------------------------------- 7. Drawing

const PALETTE = 6; // classes c0 to c5
const color = (client) => client >= 0 ? 'c' + client % PALETTE : 'c-none';

// Labels keeps texts from covering each other: what comes first has the place.
class Labels {
  constructor(g, layer) { this.g = g; this.layer = layer; this.taken = []; this.lines = []; }

  block(x, y, w, height) { this.taken.push([x, y, w, height]); }

  free(x, y, w, height, least = this.g.gutter - 6) { // left of it stand the times
    if (x < least || x + w > this.g.width - 1) return false;
    return this.taken.every(([a, b, c, d]) => x >= a + c || a >= x + w || y >= b + d || b >= y + height);
  }

  // along notes a drawn line; labels that ask for it keep clear of lines.
  along(points) { for (let i = 1; i < points.length; i++) this.lines.push([...points[i - 1], ...points[i]]); }

  crossed(x, y, w, height) {
    return this.lines.some(([x1, y1, x2, y2]) => { // does the line meet the box?
      let from = 0, to = 1;
      for (const [p, q] of [[x1 - x2, x1 - x], [x2 - x1, x + w - x1], [y1 - y2, y1 - y], [y2 - y1, y + height - y1]]) {
        if (p === 0 && q < 0) return false;
        if (p < 0) from = Math.max(from, q / p);
        if (p > 0) to = Math.min(to, q / p);
      }
      return from <= to;
    });
  }

  // put places a text at the first candidate [x, y, anchor] where it fits; if it
  // must be seen, at the first one whatever is there.
  put(words, candidates, options = {}) {
    const size = options.size || this.g.font;
    const w = words.length * size * (options.bold ? 0.64 : 0.56) + 4, height = size * 1.15;
    const left = ([x, , at]) => at === 'end' ? x - w : at === 'middle' ? x - w / 2 : x;
    const open = candidates.filter((c) => this.free(left(c), c[1] - size, w, height, options.least));
    let where = options.clear && open.find((c) => !this.crossed(left(c), c[1] - size, w, height)) || open[0];
    if (!where && !options.must) return null;
    where = where || candidates[0];
    this.block(left(where), where[1] - size, w, height);
    const el = s('text', { x: where[0], y: where[1], 'text-anchor': where[2] || 'start', 'font-size': size, class: 'label ' + (options.cls || ''),
      transform: options.turn ? `rotate(${options.turn.toFixed(2)} ${where[0]} ${where[1]})` : null,
    }, words);
    this.layer.append(el);
    if (options.of) options.of.parts.push(el);
    return el;
  }
}

function draw() {
  const story = view.story;
  const width = Math.max(300, ui.pane.clientWidth);
  const g = view.geometry = layout(story, width, innerWidth > 860 ? ui.pane.clientHeight : 0);
  const names = ['bands', 'tears', 'lanes', 'bars', 'ghosts', 'now', 'folds', 'messages', 'marks', 'labels', 'axis'];
  const layer = Object.fromEntries(names.map((n) => [n, s('g', { class: 'layer-' + n })]));
  const svg = s('svg', {
    class: 'drawing', viewBox: `0 0 ${g.width} ${g.height}`, width: g.width, height: g.height, role: 'group',
    'aria-label': `Space-time diagram of ${story.lanes.length} lanes; the story beside it says the same in words`,
  }, definitions(g), ...names.map((n) => layer[n]));
  const d = { story, g, layer, labels: new Labels(g, layer.labels), items: [], bands: [], barItems: new Map() };
  d.routes = story.messages.map((m, i) => route(d, m, i));
  d.routes.forEach((r) => d.labels.along(r.points));
  drawLanes(d);
  drawBands(d);
  drawBars(d);
  drawMarks(d);
  drawMessages(d);
  drawFolds(d);
  drawTokens(d);
  drawBarLabels(d);
  drawMessageLabels(d);
  drawBandLabels(d);
  drawClocks(d);
  drawAxis(d);
  drawNow(d);
  view.items = d.items;
  d.items.forEach((it, i) => it.parts.forEach((el) => el.setAttribute('data-item', i)));
  view.svg = svg;
  ui.canvas.replaceChildren(svg);
  drawHeads(story, g);
  showStep(false);
}

function definitions(g) {
  const hatch = (id, cls, size) => s('pattern', { id, width: size, height: size, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    s('rect', { width: size, height: size, class: cls + '-ground' }), s('rect', { width: size * 0.4, height: size, class: cls }));
  return s('defs', {}, hatch('hatch-stop', 'hatch-stop', 7), hatch('hatch-band', 'hatch-band', 9),
    s('clipPath', { id: 'past' }, s('rect', { x: 0, y: 0, width: g.width, height: g.height, id: 'past-rect' })));
}

// item makes an element something that can be hovered, tapped and stepped to.
function item(d, el, from, to, lane, details) {
  el.classList.add('item');
  el.setAttribute('tabindex', '-1');
  const it = { el, from, to, lane, details, parts: [el] };
  d.items.push(it);
  return it;
}

// shortName keeps a lane's name where its column is narrow: client-1 is c-1.
function shortName(name, spacing, font) {
  if (name.length * font * 0.58 < spacing - 6) return name;
  const [, word, number] = name.match(/^(.*?)(-?\d*)$/);
  const room = Math.max(2, Math.floor((spacing - 6) / (font * 0.58)) - number.length);
  return word.slice(0, room) + number;
}

function drawHeads(story, g) {
  const head = (l, i) => {
    const el = h('span', { class: 'lane-head ' + color(l.client), title: l.name }, shortName(l.name, g.spacing, g.font));
    el.style.left = g.x[i] + 'px';
    return el;
  };
  const time = h('span', { class: 'lane-head time' }, g.narrow ? 's' : 'true time');
  time.style.left = (g.narrow ? 24 : 36) + 'px';
  ui.lanes.style.width = g.width + 'px';
  refill(ui.lanes, time, ...story.lanes.map(head));
}

function drawLanes(d) {
  const { g, story, layer } = d;
  story.lanes.forEach((l, i) => {
    layer.lanes.append(s('path', { d: `M${g.x[i]} ${g.top}V${g.bottom}`, class: 'lane' }),
      s('text', { x: g.x[i], y: 24, 'text-anchor': 'middle', 'font-size': g.font, class: 'print-head ' + color(l.client) }, shortName(l.name, g.spacing, g.font)));
  });
  if (view.scaled) return;
  story.times.forEach((t, i) => {
    if (i === 0 || t - story.times[i - 1] < SILENCE) return;
    const y = (g.y[i] + g.y[i - 1]) / 2;
    let path = `M0 ${y}`;
    for (let x = 0, up = 1; x < g.width; x += 7, up = -up) path += `l7 ${up * 4}`;
    layer.tears.append(s('path', { d: path, class: 'tear' }));
    d.labels.put(length(t - story.times[i - 1]), [[g.gutter - 14, y + 4, 'end']], { cls: 'silence', size: g.font - 1.5, must: true });
  });
}

// drawBands shades the time in which more clients believed than may, if that
// is among the findings.
function drawBands(d) {
  const { g, story, layer } = d;
  if (!story.findings.some((f) => f.kind === 'overlap')) return;
  const beliefs = story.bars.filter((b) => b.kind === BAR.belief);
  const last = story.times.length - 1;
  const during = (i, j) => beliefs.filter((b) => b.from < j && (b.to < 0 ? last : b.to) > i);
  const count = (i) => during(i, i + 1).length;
  for (let i = 0; i < last; i++) {
    if (count(i) < 2) continue;
    let j = i;
    while (j < last && count(j) >= 2) j++;
    const xs = during(i, j).map((b) => g.x[b.lane]), left = Math.min(...xs) - 22, right = Math.max(...xs) + 22;
    const el = s('rect', { x: left, y: g.y[i], width: right - left, height: Math.max(2, g.y[j] - g.y[i]), class: 'band' });
    const [from, to] = [i, j];
    const most = Math.max(...story.times.slice(i, j).map((_, k) => count(i + k)));
    const it = item(d, el, from, to, -1, () => [lockless(story) ? `${most} at work at once, without a lock` : `${most} believe at once that they hold the lock`, `from ${seconds(story.times[from])} s to ${seconds(story.times[to])} s, ${length(story.times[to] - story.times[from])}`]);
    layer.bands.append(el);
    d.bands.push({ it, most, left, right, y1: g.y[i], y2: g.y[j] });
    i = j;
  }
}

function drawBandLabels(d) {
  for (const b of d.bands) {
    const x = (b.left + b.right) / 2, places = [];
    for (let y = b.y1 + d.g.font + 6; y < b.y2 - 4; y += 11) places.push([x, y, 'middle']);
    const put = (words) => words.length * d.g.font * 0.56 < b.right - b.left - 50 && d.labels.put(words, places, { cls: 'warn', size: d.g.font - 0.5, of: b.it });
    if (!places.length) continue;
    if (lockless(d.story)) put(`${b.most} at work at once`) || put(`${b.most} at once`);
    else put(`${b.most} believe that they hold the lock`) || put(`${b.most} believe at once`) || put(`${b.most} at once`);
  }
}

const BAR_CLASS = ['belief', 'grant', 'stop', 'stall', 'down', 'fault'];
const BAR_WIDTH = [14, 14, 34, 22, 14, 5];

function barBox(d, b) {
  const { g, story } = d;
  const w = BAR_WIDTH[b.kind] * (g.narrow && b.kind === BAR.stop ? 0.85 : 1);
  let x = g.laneX(b.lane) - w / 2;
  if (b.kind === BAR.fault && b.lane >= 0) x -= 14;
  if (b.kind === BAR.grant) { // grants that overlap stand side by side
    const before = story.bars.filter((o) => o !== b && o.kind === b.kind && o.lane === b.lane && o.from < b.from && (o.to < 0 || o.to > b.from)).length;
    x += before * 16;
  }
  const y = g.y[b.from], y2 = b.to < 0 ? g.bottom : g.y[b.to];
  return { x, y, w, h: Math.max(3, y2 - y) };
}

function drawBars(d) {
  const { story, layer } = d;
  const order = [BAR.down, BAR.stop, BAR.stall, BAR.fault, BAR.grant, BAR.belief];
  const group = s('g', { id: 'bars' });
  [...story.bars].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)).forEach((b) => {
    const box = barBox(d, b);
    const el = s('rect', { x: box.x, y: box.y, width: box.w, height: box.h, rx: b.kind === BAR.stop ? 3 : 2, class: `bar ${BAR_CLASS[b.kind]} ${color(b.client)}` });
    d.barItems.set(b, item(d, el, b.from, b.to < 0 ? Infinity : b.to, b.lane, () => barDetails(story, b)));
    group.append(el);
  });
  layer.bars.setAttribute('clip-path', 'url(#past)');
  layer.bars.append(group);
  layer.ghosts.append(s('use', { href: '#bars' }));
}

const holderName = (story, client) => (story.lanes.find((l) => l.client === client) || { name: 'somebody' }).name;

function drawBarLabels(d) {
  for (const b of d.story.bars) {
    if (b.kind === BAR.belief || b.kind === BAR.grant) drawInside(d, b);
    else if (b.kind !== BAR.fault) drawStopLabel(d, b); // a fault's mark says which it is
    if (b.kind === BAR.grant && b.to >= 0 && b.label !== 'released') drawEndOfGrant(d, b);
  }
}

// drawInside writes along a bar whose it is, as fully as its length allows.
function drawInside(d, b) {
  const { g, story, layer } = d, box = barBox(d, b), token = b.token ? ' \u00b7 ' + b.token : '';
  const name = holderName(story, b.client), size = g.font - 1.5;
  const options = b.kind === BAR.grant ? [name + ' holds the lock' + token, name + token] : [b.label + token, 'believes' + token];
  const words = [...options, String(b.token || '')].find((o) => o.length * size * 0.57 + 6 < box.h);
  if (!words) return;
  const x = box.x + box.w / 2, y = box.y + Math.min(box.h / 2, 150);
  const el = s('text', { x, y, transform: `rotate(-90 ${x} ${y})`, 'text-anchor': 'middle', dy: size * 0.36, 'font-size': size, class: `in-bar ${BAR_CLASS[b.kind]} ${color(b.client)}` }, words);
  layer.labels.append(el);
  d.barItems.get(b).parts.push(el);
}

function drawEndOfGrant(d, b) {
  const { g, layer } = d, box = barBox(d, b), y = box.y + box.h, x = box.x + box.w + 6;
  const el = s('path', { d: `M${box.x - 5} ${y}H${box.x + box.w + 5}`, class: 'end-of-grant' });
  layer.labels.append(el);
  const it = { el, from: b.to, to: b.to, lane: b.lane, details: () => barDetails(d.story, b), parts: [el] };
  d.items.push(it);
  d.labels.put(b.label, [4, 17, 30, -8, -21].map((dy) => [x, y + dy]), { cls: 'end', must: true, size: g.font - 0.5, of: it });
}

function drawStopLabel(d, b) {
  const { g, story } = d, box = barBox(d, b), of = d.barItems.get(b);
  const long = b.to >= 0 ? ' ' + length(story.times[b.to] - story.times[b.from]) : '';
  const places = [];
  for (const dy of [12, 26, 40, 60, 90, 130]) if (dy < box.h + 14) places.push([box.x + box.w + 4, box.y + dy], [box.x - 4, box.y + dy, 'end']);
  d.labels.put(b.label + long, places, { cls: 'stopped', must: b.kind === BAR.stop, bold: true, size: g.font - 0.5, of }) ||
    d.labels.put(b.label, places, { cls: 'stopped', size: g.font - 0.5, of });
}

function drawMarks(d) {
  const { g, story, layer } = d;
  const loud = { [MARK.refused]: 1, [MARK.stale]: 1, [MARK.foreign]: 1 };
  const stopsAt = (m) => story.bars.some((b) => b.kind === BAR.stop && b.lane === m.lane && b.from === m.at);
  // The loud ones choose their place first.
  [...story.marks].sort((a, b) => (loud[b.kind] || 0) - (loud[a.kind] || 0)).forEach((m) => {
    const name = MARK_NAME[m.kind];
    const aside = m.kind === MARK.fault || m.kind === MARK.gaveUp || m.kind === MARK.clock || m.kind === MARK.closed;
    const x = g.laneX(m.lane) - (aside && m.lane >= 0 ? 22 : 0), y = g.y[m.at];
    const el = s('g', { class: `mark ${name} ${color(m.client)}` }, s('circle', { cx: x, cy: y, r: 12, class: 'hit' }), shape(name, x, y, loud[m.kind] ? 8 : 6.5));
    const it = item(d, el, m.at, m.at, m.lane, () => markDetails(story, m));
    layer.marks.append(el);
    d.labels.block(x - 9, y - 8, 18, 16);
    let words = m.label, options = { cls: name, size: g.font, of: it, clear: true };
    if (m.kind === MARK.stale) words = 'STALE ' + m.label;
    if (m.kind === MARK.write) words = g.narrow ? m.label : 'wrote ' + m.label;
    if (m.kind === MARK.fault && stopsAt(m)) words = ''; // its bar says it
    if (m.kind === MARK.fault && g.narrow) words = words.replace(/ \(fault.*/, '');
    if (loud[m.kind]) options = { ...options, cls: name + ' loud', bold: true, must: true, size: g.font + (g.narrow ? 0 : 1) };
    if (!words) return;
    const places = aside ? [[x - 10, y + 4, 'end'], [x + 40, y + 4], [x - 10, y - 9, 'end'], [x + 40, y - 9], [x - 10, y + 17, 'end'], [x + 40, y + 17]]
      : [[x + 14, y + 4], [x + 14, y - 9], [x + 14, y + 17], [x - 14, y + 4, 'end'], [x + 14, y - 22], [x + 14, y + 30]];
    const there = m.lane < 0 ? [[x + 10, y + 4]] : places;
    d.labels.put(words, there, options) || (m.kind === MARK.clock && d.labels.put('clock', there, options));
  });
}

// route finds the points of a message's line: straight, or along an elbow if
// it was long under way, so that it does not cross half the picture.
function route(d, m, index) {
  const { g, story } = d;
  const x1 = g.x[m.from], x2 = g.x[m.to], y1 = g.y[m.sent], dir = Math.sign(x2 - x1) || 1;
  const marked = story.marks.some((k) => k.lane === m.to && k.at === m.ended && k.kind <= MARK.enter);
  const pull = (marked ? 10 : 8) * dir;
  if (m.flags & FLAG.lost) {
    const y2 = Math.max(m.ended >= 0 ? g.y[m.ended] : y1, y1 + 7);
    return { points: [[x1 + 7 * dir, y1], [x1 + (x2 - x1) * (Math.abs(x2 - x1) > 1.5 * g.spacing ? 0.75 : 0.6), Math.min(y2, y1 + 30)]], lost: true };
  }
  if (m.ended < 0) return { points: [[x1 + 7 * dir, y1], [x1 + dir * g.spacing * 0.5, y1 + 8], [x1 + dir * g.spacing * 0.5, g.bottom]], endless: true };
  const y2 = g.y[m.ended];
  if (y2 - y1 < 70 || m.from === m.to) return { points: [[x1 + 7 * dir, y1], [x2 - pull, y2]] };
  const xm = m.flags & FLAG.reply ? x2 - dir * (22 + index % 3 * 5) : x1 + dir * (g.spacing * 0.5 + index % 3 * 6);
  return { points: [[x1 + 7 * dir, y1], [xm, y1 + 9], [xm, y2 - 9], [x2 - pull, y2]], late: true };
}

function drawMessages(d) {
  const { g, story, layer } = d;
  story.messages.forEach((m, i) => {
    const r = d.routes[i], p = r.points, end = p[p.length - 1], before = p[p.length - 2];
    const cls = `${color(m.client)}${m.flags & FLAG.reply ? ' reply' : ''}${m.flags & FLAG.refused ? ' no' : ''}${r.late ? ' late' : ''}`;
    const path = 'M' + p.map((q) => q.join(' ')).join('L');
    const el = s('g', { class: 'arrow ' + cls }, s('path', { d: path, class: 'hit-line' }), s('path', { d: path, class: 'message ' + cls }));
    if (r.lost) el.append(shape('lost', end[0], end[1], 6));
    else if (!r.endless) el.append(head(before, end, cls));
    r.item = item(d, el, m.sent, m.ended < 0 ? Infinity : m.ended, m.to, () => messageDetails(story, m));
    layer.messages.append(el);
  });
}

function head([x1, y1], [x2, y2], cls) {
  const a = Math.atan2(y2 - y1, x2 - x1), at = (len, turn) => `${(x2 - len * Math.cos(a + turn)).toFixed(1)} ${(y2 - len * Math.sin(a + turn)).toFixed(1)}`;
  return s('path', { d: `M${x2} ${y2}L${at(10, 0.38)}L${at(10, -0.38)}Z`, class: 'head ' + cls });
}

// spot finds where on a message's line its words and its token go: the words in
// the gap beside the client, the token in the gap before the receiver.
function spot(d, m, r) {
  const { g } = d, p = r.points, straight = p.length === 2, [a, b] = p, last = p[p.length - 1];
  const dir = Math.sign(b[0] - a[0]) || 1;
  const along = (x) => a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0] || 1);
  const start = a[0] + dir * (g.spacing / 2 - 7), end = straight ? b[0] - dir * (g.spacing / 2 - 7) : start;
  const words = r.lost ? (a[0] + b[0]) / 2 : m.flags & FLAG.reply ? end : start;
  const token = r.lost ? a[0] + dir * 22 : straight ? end : last[0] - dir * Math.min(34, g.spacing * 0.35);
  const turn = Math.atan2(b[1] - a[1], b[0] - a[0]) * 180 / Math.PI;
  const upright = turn > 90 ? turn - 180 : turn < -90 ? turn + 180 : turn;
  return { words, wordsY: along(words), token, tokenY: straight ? along(token) : last[1] - 3, turn: Math.abs(upright) < 25 ? upright : 0, same: Math.abs(words - token) < 10 };
}

// drawTokens puts the fencing tokens on their arrows.
function drawTokens(d) {
  const { g, story } = d;
  story.messages.forEach((m, i) => {
    if (!m.token) return;
    const r = d.routes[i], at = spot(d, m, r), x = at.token, y = at.tokenY;
    const words = String(m.token), size = g.font - 0.5, w = words.length * size * 0.6 + 8;
    d.labels.block(x - w / 2, y - 8, w, 16);
    const el = s('g', { class: 'token item ' + color(m.client) }, s('rect', { x: x - w / 2, y: y - 7.5, width: w, height: 15, rx: 3 }),
      s('text', { x, y: y + size * 0.36, 'text-anchor': 'middle', 'font-size': size }, words));
    d.layer.labels.append(el);
    r.item.parts.push(el);
  });
}

const fateOf = (m) => m.flags & FLAG.lost ? (m.flags & FLAG.nobody ? 'nobody there' : 'LOST') : m.flags & FLAG.held ? 'held up' : m.flags & FLAG.twice ? 'twice' : '';

// drawMessageLabels writes what messages carry, in the long form where it fits.
// What became of an unlucky message comes first.
function drawMessageLabels(d) {
  const { g, story } = d, size = g.font - 1;
  const order = [...story.messages.keys()].sort((a, b) => !!fateOf(story.messages[b]) - !!fateOf(story.messages[a]) || a - b);
  for (const i of order) {
    const m = story.messages[i], r = d.routes[i], at = spot(d, m, r), fate = fateOf(m);
    const room = r.lost ? Math.abs(r.points[1][0] - r.points[0][0]) : g.spacing - 30;
    const plain = m.text.replace(/ ?\b\w+=\S+/g, '').trim();
    const bare = m.token && plain === String(m.token) ? '' : plain.length > 26 ? plain.slice(0, 25) + '\u2026' : plain;
    // A terse answer such as 0 or OK is said in words too, where there is room.
    const whole = [m.flags & FLAG.reply && bare && bare.length < 6 && m.short ? bare + ': ' + m.short : bare, m.short, bare].filter(Boolean);
    const words = whole.map((w) => (fate ? w + ' ' + fate : w)).find((w) => w.length * size * 0.56 < room) || fate;
    if (!words) continue;
    const above = at.wordsY - (at.same && m.token ? 11 : 4), below = at.wordsY + size + (at.same && m.token ? 8 : 2);
    d.labels.put(words, [[at.words, above, 'middle'], [at.words, below, 'middle']],
      { cls: fate ? 'fate' : 'message-label ' + color(m.client), size, bold: !!fate, must: !!fate && !(m.flags & FLAG.nobody), turn: at.turn, of: r.item });
  }
}

function drawFolds(d) {
  const { g, story, layer } = d;
  story.folds.forEach((f) => {
    const x = g.x[f.lane] + (story.bars.some((b) => b.kind === BAR.belief && b.lane === f.lane && b.from <= f.from && (b.to < 0 || b.to >= f.to)) ? 12 : 0);
    const y1 = g.y[f.from] + 4, y2 = Math.max(g.y[f.to] - 4, y1 + 2);
    const el = s('g', { class: 'fold ' + color(f.client) }, s('path', { d: `M${x} ${y1}V${y2}`, class: 'hit-line' }), s('path', { d: `M${x} ${y1}V${y2}`, class: 'dots' }));
    const it = item(d, el, f.from, f.to, f.lane, () => [`${f.count} ${f.label}`, `${seconds(story.times[f.from])} s to ${seconds(story.times[f.to])} s; folded into one line`]);
    layer.folds.append(el);
    const places = [], middle = (y1 + y2) / 2;
    for (const dy of [0, -12, 12, -24, 24, -36, 36, -48, 48, -60, 60]) places.push([x + 9, middle + dy + 4], [x - 9, middle + dy + 4, 'end']);
    const long = `${f.count} ${f.label}`;
    (g.spacing > 150 && d.labels.put(long, places, { cls: 'fold-label', size: g.font - 1, of: it, clear: true })) ||
      d.labels.put('\u00d7' + f.count, places, { cls: 'fold-label', size: g.font - 0.5, must: true, of: it, clear: true });
  });
}

// drawClocks writes beside a lane what its node's clock shows, where that is
// not the true time.
function drawClocks(d) {
  const { g, story } = d;
  const written = {};
  story.clocks.forEach((c) => {
    if (written[c.lane] && g.y[c.at] - written[c.lane] < 40) return;
    const words = clockWords(story, c, c.at);
    const x = g.x[c.lane], y = g.y[c.at] + 4;
    const short = words.replace('wall ', '').replace(/, .*/, '');
    const places = [[x + 12, y], [x - 12, y, 'end'], [x + 12, y + 14], [x - 12, y + 14, 'end'], [x + 12, y - 14], [x - 12, y - 14, 'end']];
    const el = (g.spacing > 110 && d.labels.put('\u25f7 ' + words, places, { cls: 'local', size: g.font - 1.5 })) ||
      d.labels.put('\u25f7 ' + short, places, { cls: 'local', size: g.font - 1.5 });
    if (el) written[c.lane] = g.y[c.at];
  });
}

function clockWords(story, c, at) {
  const shows = (us) => { const ns = story.times[at] + us * 1000; return (ns < 0 ? '\u2212' : '') + seconds(Math.abs(ns)) + ' s'; };
  const wrong = [];
  if (Math.abs(c.wall) >= 1000) wrong.push('wall ' + shows(c.wall));
  if (Math.abs(c.mono) >= 1000) wrong.push('monotonic ' + shows(c.mono));
  return wrong.join(', ') || 'right again';
}

// clockOf says what a lane's clocks show at a moment, '' if that is true time.
function clockOf(story, lane, at) {
  const known = story.clocks.filter((c) => c.lane === lane && c.at <= at).pop();
  if (!known || Math.abs(known.wall) < 1000 && Math.abs(known.mono) < 1000) return '';
  const how = [];
  if (Math.abs(known.wall) >= 1000) how.push('wall ' + signed(known.wall));
  if (Math.abs(known.mono) >= 1000) how.push('monotonic ' + signed(known.mono));
  return `${story.lanes[lane].name}: ${clockWords(story, known, at)} (${how.join(', ')})`;
}

// drawAxis writes the times of the story's moments, and of others where there
// is room, and a numbered flag for each finding.
function drawAxis(d) {
  const { g, story, layer } = d;
  const told = new Set(story.lines.map((l) => l.at));
  const flags = new Map();
  story.findings.forEach((f, i) => { const at = story.lines[f.line] && story.lines[f.line].at; if (at != null) flags.set(at, [...(flags.get(at) || []), i + 1]); });
  const x = g.gutter - 10;
  layer.axis.append(s('path', { d: `M${x} ${g.top}V${g.bottom}`, class: 'axis' }));
  const used = [], written = new Set(); // two moments of one millisecond read the same
  const rank = (at) => flags.has(at) ? 0 : story.lines.some((l) => l.at === at && l.mark !== 'plain') ? 1 : told.has(at) ? 2 : 3;
  [...story.times.keys()].sort((a, b) => rank(a) - rank(b) || a - b).forEach((at) => {
    const y = g.y[at];
    layer.axis.append(s('path', { d: `M${x - 3} ${y}h6`, class: 'axis' }));
    if (used.some((u) => Math.abs(u - y) < g.font + 1)) return;
    if (written.has(seconds(story.times[at]))) return;
    used.push(y);
    written.add(seconds(story.times[at]));
    d.labels.put(seconds(story.times[at]), [[x - 5, y + 4, 'end']], { least: 1, cls: 'time' + (told.has(at) ? ' told' : ''), size: g.font - (g.narrow ? 1 : 0.5), must: rank(at) < 2 });
  });
  flags.forEach((numbers, at) => {
    const words = numbers.length > 1 ? numbers[0] + '\u2013' + numbers[numbers.length - 1] : String(numbers[0]);
    const w = 7 + words.length * 6.5, left = x - 2, y = g.y[at], line = story.findings[numbers[0] - 1].line;
    const el = s('g', { class: 'flag' }, s('rect', { x: left, y: y - 7.5, width: w, height: 15, rx: 2 }), s('text', { x: left + w / 2, y: y + 4, 'text-anchor': 'middle', 'font-size': 10.5 }, words));
    el.addEventListener('click', () => goto(line));
    item(d, el, at, at, -1, () => numbers.map((n) => story.lines[story.findings[n - 1].line].text));
    layer.axis.append(el);
  });
}

function drawNow(d) {
  d.layer.now.append(s('path', { class: 'now-line', d: `M0 0H${d.g.width}` }));
}

// --------------------------------------------------------------- 8. Steps

const sliderStep = () => +ui.slider.value >= view.story.lines.length ? -1 : +ui.slider.value;

// goto shows the story up to a line; -1 shows the whole story.
function goto(step) {
  const n = view.story.lines.length;
  view.step = step >= 0 && step < n ? step : -1;
  try { history.replaceState(null, '', host.embedded ? host.address(view.step) : anchor(data.stories[view.index], view.step)); } catch (e) { /* some viewers forbid it */ }
  showStep(true);
}

// move goes on or back; beyond either end lies the whole story.
function move(by) {
  const n = view.story.lines.length;
  const now = view.step < 0 ? (by > 0 ? -1 : n) : view.step;
  goto(now + by >= n ? -1 : now + by);
}

function showStep(scroll) {
  const story = view.story, g = view.geometry, line = story.lines[view.step];
  const at = line ? line.at : Infinity;
  view.svg.classList.toggle('stepping', !!line);
  for (const it of view.items) {
    for (const el of it.parts) el.classList.toggle('future', it.from > at);
    it.el.classList.toggle('flight', it.from <= at && it.to > at && it.el.classList.contains('arrow'));
    it.el.classList.toggle('present', it.to === at);
  }
  const y = line ? g.y[at] : g.height;
  view.svg.querySelector('#past-rect').setAttribute('height', line ? y + 2 : g.height);
  view.svg.querySelector('.layer-now').setAttribute('transform', `translate(0 ${y})`);
  ui.slider.value = line ? view.step : story.lines.length;
  ui.slider.setAttribute('aria-valuetext', line ? `step ${view.step + 1} of ${story.lines.length}: ${line.text}` : 'the whole story');
  ui.caption.className = 'caption ' + (line ? line.mark : 'whole');
  refill(ui.caption, ...(line
    ? [h('span', { class: 'when' }, seconds(story.times[at]) + ' s'), ' ', LINE_SIGN[line.mark] ? icon(LINE_SIGN[line.mark]) : '', ' ', line.text]
    : [`The whole story, ${story.lines.length} steps. Press \u2192 to go through it.`]));
  ui.lines.querySelectorAll('.line').forEach((el, i) => {
    el.classList.toggle('future', !!line && i > view.step);
    if (i === view.step) el.setAttribute('aria-current', 'step'); else el.removeAttribute('aria-current');
  });
  if (scroll) follow(line ? y : null);
}

// follow keeps the present moment in sight, in the diagram and in the story.
function follow(y) {
  const smooth = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  if (y == null) return;
  const pane = ui.pane, room = pane.clientHeight;
  const shown = pane.getBoundingClientRect(), bar = ui.footer.getBoundingClientRect();
  if (shown.bottom > bar.top + 2 || shown.top < 0) scrollBy({ top: shown.top - 4, behavior: 'auto' }); // a narrow page scrolls as a whole
  if (pane.scrollHeight > room && (y < pane.scrollTop + 60 || y > pane.scrollTop + room - 80)) pane.scrollTo({ top: Math.max(0, y - room * 0.45), behavior: smooth });
  const current = ui.lines.querySelector('[aria-current]');
  const list = ui.lines;
  if (current && list.scrollHeight > list.clientHeight + 4) {
    const top = current.offsetTop - list.offsetTop;
    if (top < list.scrollTop + 20 || top + current.offsetHeight > list.scrollTop + list.clientHeight - 40) list.scrollTo({ top: Math.max(0, top - list.clientHeight * 0.4), behavior: smooth });
  }
}

let playing = 0;
function togglePlay() {
  if (playing) { clearInterval(playing); playing = 0; showPlaying(false); return; }
  if (view.step < 0) goto(0);
  playing = setInterval(() => { move(1); if (view.step < 0) togglePlay(); }, 2200);
  showPlaying(true);
}
function showPlaying(on) {
  ui.play.textContent = on ? 'pause' : 'play';
  ui.play.setAttribute('aria-pressed', on);
}

// ------------------------------------------------------------- 9. Details

function messageDetails(story, m) {
  const t = story.times, out = [`${story.lanes[m.from].name} \u2192 ${story.lanes[m.to].name}`, m.text];
  if (m.token) out.push('fencing token ' + m.token);
  const took = m.ended >= 0 ? length(t[m.ended] - t[m.sent]) : '';
  if (m.flags & FLAG.lost) out.push(`sent ${seconds(t[m.sent])} s, ` + (m.flags & FLAG.nobody ? 'finds nobody there' : 'LOST'));
  else if (m.ended < 0) out.push(`sent ${seconds(t[m.sent])} s, still under way at the end`);
  else out.push(`sent ${seconds(t[m.sent])} s, arrives ${seconds(t[m.ended])} s (${took})`);
  if (m.flags & FLAG.held) out.push('held up in the network');
  if (m.flags & FLAG.timedOut) out.push('the caller gave up waiting: outcome unknown to it');
  if (m.flags & FLAG.twice) out.push('delivered more than once');
  for (const [lane, at] of [[m.from, m.sent], [m.to, m.ended]]) { const c = at >= 0 && clockOf(story, lane, at); if (c) out.push(c); }
  return out;
}

function barDetails(story, b) {
  const t = story.times, name = b.lane < 0 ? 'the network' : story.lanes[b.lane].name, token = b.token ? ` (token ${b.token})` : '';
  const who = holderName(story, b.client);
  const what = { [BAR.belief]: `${name} ${b.label}${token}`, [BAR.grant]: `the lock is ${who}\u2019s${token}` }[b.kind] || `${name}: ${b.label}`;
  const out = [what, `from ${seconds(t[b.from])} s ` + (b.to >= 0 ? `to ${seconds(t[b.to])} s, ${length(t[b.to] - t[b.from])}` : 'to the end of the run')];
  if (b.kind === BAR.grant && b.label) out.push('ended: ' + b.label);
  const c = b.lane >= 0 && clockOf(story, b.lane, b.from);
  if (c) out.push('at its start, ' + c);
  return out;
}

function markDetails(story, m) {
  const lane = story.lanes[m.lane];
  const said = story.lines.filter((l) => l.at === m.at && l.mark !== 'finding').map((l) => l.text);
  const out = said.length ? said : [`${lane ? lane.name : 'the network'}: ${MARK_NAME[m.kind]} ${m.label}`];
  out.push(`at ${seconds(story.times[m.at])} s` + (lane ? `, ${lane.name}` : ''));
  const c = lane && clockOf(story, m.lane, m.at);
  if (c) out.push(c);
  return out;
}

let pinned = null;

function showTip(el, x, y) {
  const it = view.items[el.getAttribute('data-item')];
  if (!it) return;
  const words = it.details();
  refill(ui.tip, ...words.map((w, i) => h('p', { class: i === 0 ? 'first' : '' }, w)));
  ui.tip.hidden = false;
  el.setAttribute('aria-label', words.join('. '));
  const box = ui.tip.getBoundingClientRect();
  ui.tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + 'px';
  ui.tip.style.top = (y + 18 + box.height > innerHeight - 6 ? Math.max(6, y - box.height - 14) : y + 18) + 'px';
}

function hideTip() {
  ui.tip.hidden = true;
  if (pinned) pinned.classList.remove('selected');
  pinned = null;
}

function pin(el, x, y) {
  hideTip();
  pinned = el;
  el.classList.add('selected');
  showTip(el, x, y);
}

function watchPointer() {
  ui.canvas.addEventListener('pointermove', (e) => {
    if (pinned || e.pointerType === 'touch') return;
    const el = e.target.closest('[data-item]');
    if (el) showTip(el, e.clientX, e.clientY); else hideTip();
  });
  ui.canvas.addEventListener('pointerleave', () => { if (!pinned) hideTip(); });
  document.addEventListener('click', (e) => {
    const el = e.target.closest && e.target.closest('[data-item]');
    if (el && el !== pinned) pin(el, e.clientX, e.clientY); else hideTip();
  });
  ui.pane.addEventListener('scroll', hideTip);
}

// nextItem goes through the drawn things in order of time, for the keyboard.
function nextItem(by) {
  const order = [...view.items].sort((a, b) => a.from - b.from || a.to - b.to);
  const now = order.findIndex((it) => it.el === pinned);
  const it = order[now < 0 ? (by > 0 ? 0 : order.length - 1) : (now + by + order.length) % order.length];
  if (!it) return;
  const reveal = it.el.getBoundingClientRect(), pane = ui.pane.getBoundingClientRect();
  if (reveal.top < pane.top + 40 || reveal.top > pane.bottom - 60) ui.pane.scrollTop += reveal.top - pane.top - pane.height * 0.4;
  requestAnimationFrame(() => {
    const box = it.el.getBoundingClientRect();
    pin(it.el, box.left + Math.min(box.width / 2, 200), Math.max(box.top, pane.top) + Math.min(box.height / 2, 30));
    it.el.focus({ preventScroll: true });
  });
}

// ------------------------------------------------------------ 10. Controls

function zoom(by) {
  view.zoom = Math.min(4, Math.max(0.5, view.zoom * by));
  draw();
  showStep(true);
}

function toggleScale() {
  view.scaled = !view.scaled;
  ui.scale.setAttribute('aria-pressed', view.scaled);
  draw();
  showStep(true);
}

function nextFinding() {
  const lines = view.story.findings.map((f) => f.line).sort((a, b) => a - b);
  if (lines.length) goto(lines.find((l) => l > view.step) ?? lines[0]);
}

const KEYS = {
  ArrowRight: () => move(1), ArrowLeft: () => move(-1), Home: () => goto(0), End: () => goto(-1), ' ': togglePlay,
  f: nextFinding, '[': () => nextItem(-1), ']': () => nextItem(1), '+': () => zoom(1.25), '=': () => zoom(1.25), '-': () => zoom(1 / 1.25),
  s: toggleScale, t: nextTheme, Escape: hideTip,
};

function watchKeys() {
  document.addEventListener('keydown', (e) => {
    const act = KEYS[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey || !inPage()) return;
    const where = e.target.tagName;
    if (where === 'SELECT' || e.key === ' ' && (where === 'BUTTON' || where === 'SUMMARY' || where === 'A')) return;
    e.preventDefault();
    act();
  });
}

const THEMES = ['auto', 'light', 'dark'];

function themeButton() {
  ui.theme = h('button', { type: 'button', class: 'quiet', id: 'theme', onclick: nextTheme, title: 'Theme (t)' });
  setTheme(rememberedTheme());
  return ui.theme;
}

function setTheme(name) {
  if (name === 'auto') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.setAttribute('data-theme', name);
  ui.theme.textContent = '\u25d0 ' + name;
  ui.theme.setAttribute('aria-label', 'Theme: ' + name);
  view.theme = name;
}

function nextTheme() {
  const name = THEMES[(THEMES.indexOf(view.theme) + 1) % THEMES.length];
  setTheme(name);
  try { localStorage.setItem('locklab-theme', name); } catch (e) { /* no memory, no harm */ }
}

function rememberedTheme() {
  try { const name = localStorage.getItem('locklab-theme'); return THEMES.includes(name) ? name : 'auto'; } catch (e) { return 'auto'; }
}

// On paper stands the whole story, whatever step is on the screen.
function watchPrint() {
  let step = -1;
  addEventListener('beforeprint', () => { step = view.step; view.step = -1; if (inPage()) showStep(false); });
  addEventListener('afterprint', () => { view.step = step; if (inPage()) showStep(false); });
}

// watchSize draws again when the pane has another size. On a narrow page its
// height follows from the drawing, so there only the width counts.
function watchSize() {
  const size = () => ui.pane.clientWidth + (innerWidth > 860 ? 'x' + ui.pane.clientHeight : '');
  let drawn = size();
  new ResizeObserver(() => { if (inPage() && size() !== drawn) { drawn = size(); draw(); } }).observe(ui.pane);
}

// --------------------------------------------------------------- 11. Start

// inPage says whether a story is on the screen: a host may put the viewer away.
const inPage = () => !!view.story && host.root.isConnected;

function watch() {
  watchPointer();
  watchKeys();
  watchPrint();
  watchSize();
}

function start() {
  if (!data.stories || data.stories.length === 0) { host.root.replaceChildren(h('p', {}, 'This page holds no story.')); return; }
  build();
  openAddress();
  addEventListener('hashchange', openAddress);
  watch();
}

// embed builds the viewer inside an element of another page. address gives the
// fragment of one of the present story's steps, -1 for the whole story.
function embed(element, address) {
  Object.assign(host, { root: element, embedded: true, address });
  build();
  watch();
}

// rest stops what goes on by itself; a host that puts the viewer away calls it.
function rest() {
  if (playing) togglePlay();
  hideTip();
}

// tell shows a story in the embedded viewer, which must stand in the page.
function tell(index, step) {
  rest();
  if (view.index === index) draw(); else open(index);
  goto(step);
}

if (window.locklabIndex) window.locklabIndex({ data, text, h, s, refill, icon, linked, VERDICT, LOCK, embed, tell, rest, themeButton, nextTheme, pinned: () => pinned });
else start();
})();
