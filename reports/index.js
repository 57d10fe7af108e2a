'use strict';

// The script of a comparison's page, index.html: the matrix and the tables, and
// a page for each cell and each story. The diagrams are drawn by page.js, which
// calls this script with what both need (index_data.go describes the data).
//
//   1. Data       rows and cells become objects
//   2. Address    what is shown, filtered and sorted, after the #
//   3. Entrance   the answer in numbers, the filters, the legend
//   4. Matrix     rows, columns, cells
//   5. Tables     fewest faults, scenarios, plots
//   6. Case       one cell or story: its facts, diagram, plan, commands
//   7. Keys       and the tip of a cell
//   8. Start

window.locklabIndex = function (viewer) {
const { data, text, h, s, refill, icon, linked, VERDICT, LOCK } = viewer;

// ---------------------------------------------------------------- 1. Data

const report = data.report;
const faults = report.faults;
const pairs = report.pairs.map(([d, r], i) => ({ at: i, design: report.designs[d], resource: report.resources[r], cells: faults.map(() => null), cannot: new Set() }));
for (const [p, f] of report.cannot) pairs[p].cannot.add(f);
const cells = report.cells.map((c) => ({
  pair: pairs[c.p], fault: c.f, runs: c.n, worst: text(c.w), rate: c.r, below: text(c.b), command: text(c.c), seed: c.s, story: c.t - 1,
  proven: c.x, panics: c.z || 0, verdicts: outcomes(c.v), locks: outcomes(c.l), saved: c.y.map(([p, v]) => ({ pair: pairs[p], verdict: text(v) })),
}));
for (const c of cells) c.pair.cells[c.fault] = c;
const told = report.told.map((t, i) => ({ ...t, at: i, design: text(t.design), resource: text(t.resource), verdict: text(t.verdict),
  drawn: t.drawn - 1, kinds: text(t.kinds), words: t.words.map(text), command: text(t.command) }));

function outcomes(list) { return list.map(([answer, runs, rate]) => ({ answer: text(answer), runs, rate: text(rate) })); }

// SEVERITY orders the verdicts, the worst first; LETTER stands for each in the
// matrix.
const SEVERITY = ['two-writers', 'lost-update', 'stuck', 'vacuous', 'fenced', 'safe'];
const LETTER = { 'two-writers': 'T', 'lost-update': 'L', stuck: 'K', vacuous: '\u2013', fenced: 'F', safe: '\u00b7' };
const isHarm = (verdict) => SEVERITY.indexOf(verdict) >= 0 && SEVERITY.indexOf(verdict) < 3;
const plural = (n, one, many) => `${n.toLocaleString('en')} ${n === 1 ? one : many || one + 's'}`;

// short writes a rate for a cell: two digits are enough there.
function short(rate) {
  const p = rate * 100;
  return p >= 99.5 && p < 100 ? '>99%' : p >= 9.95 ? Math.round(p) + '%' : p.toFixed(1) + '%';
}

// ------------------------------------------------------------- 2. Address

// What is chosen on the entrance stands after #?, a cell after #cell/, a story
// after #story/, each with the number of a step after an @.
const CHOICES = { family: '', resource: '', fault: '', verdict: '', q: '', sort: '' };
const state = { ...CHOICES };
let place = null; // { cell } or { story }; null is the entrance

function entrance() {
  const set = new URLSearchParams();
  for (const key of Object.keys(CHOICES)) if (state[key]) set.set(key, state[key]);
  return '#' + (set.size ? '?' + String(set).replace(/%2F/g, '/') : '');
}

const written = (...names) => names.map((p) => encodeURIComponent(p).replace(/%2F/g, '/')).join(',');
const cellAddress = (c) => '#cell/' + written(c.pair.design.name, c.pair.resource.name, faults[c.fault].name);
const storyAddress = (t) => '#story/' + t.id;
const placeAddress = () => !place ? entrance() : place.cell ? cellAddress(place.cell) : storyAddress(place.story);
const stepAddress = (step) => placeAddress() + (step >= 0 ? '@' + (step + 1) : '');

// read finds out what the address names; what it does not know, it leaves out.
function read() {
  const hash = location.hash.slice(1);
  const [path, step] = hash.split('@');
  let names = [];
  try { names = path.replace(/^\w+\//, '').split(',').map(decodeURIComponent); } catch (e) { /* a broken address names nothing */ }
  if (path.startsWith('cell/')) {
    const cell = cells.find((c) => c.pair.design.name === names[0] && c.pair.resource.name === names[1] && faults[c.fault].name === names[2]);
    if (cell) return { place: { cell }, step: step > 0 ? step - 1 : -1 };
  }
  if (path.startsWith('story/')) {
    const story = told.find((t) => t.id === names[0]);
    if (story) return { place: { story }, step: step > 0 ? step - 1 : -1 };
  }
  if (hash.startsWith('?') || hash === '') {
    const set = new URLSearchParams(hash.slice(1));
    for (const key of Object.keys(CHOICES)) state[key] = set.get(key) || '';
  }
  return { place: null, step: -1, missing: hash !== '' && !hash.startsWith('?') };
}

// choose changes what the entrance shows; typing makes no history of its own.
function choose(changes, replace) {
  Object.assign(state, changes);
  try {
    if (replace) history.replaceState(null, '', entrance()); else history.pushState(null, '', entrance());
  } catch (e) { /* some viewers forbid it */ }
  showEntrance();
}

function goBack() { location.hash = entrance(); }

// ------------------------------------------------------------ 3. Entrance

const root = document.getElementById('locklab');
const ui = {};

function build() {
  ui.theme = viewer.themeButton();
  ui.keys = h('button', { type: 'button', class: 'quiet', onclick: toggleKeys, title: 'Keys (?)', 'aria-label': 'Keys' }, '?');
  ui.tools = h('div', { class: 'page-tools' }, ui.keys, ui.theme);
  ui.missing = h('p', { class: 'banner', role: 'alert', hidden: true }, 'The address names something that this report does not hold.');
  ui.count = h('span', { class: 'count', 'aria-live': 'polite' });
  ui.search = h('input', { type: 'search', id: 'search', placeholder: 'design, resource\u2026', 'aria-label': 'Search designs and resources (/)', autocomplete: 'off', spellcheck: 'false', oninput: () => choose({ q: ui.search.value }, true) });
  ui.matrix = h('table', { class: 'matrix', role: 'grid', 'aria-label': 'Verdicts by design, resource and family of faults' });
  ui.scroll = h('div', { class: 'matrix-scroll' }, ui.matrix);
  ui.fewest = h('section', { id: 'fewest' });
  ui.scenarios = h('section', { id: 'scenarios' });
  ui.filters = h('div', { class: 'filters', role: 'search' });
  ui.tip = h('div', { class: 'tip cell-tip', role: 'tooltip', hidden: true });
  ui.help = keysDialog();
  ui.entrance = h('div', { class: 'entrance' },
    h('header', { class: 'masthead' },
      h('div', {}, h('h1', {}, 'Which lock holds?'),
        h('p', { class: 'lead' }, `${plural(report.designs.length, 'design')} of a distributed lock, on the resources they would sensibly protect, under each family of faults: `,
          'what the resource accepted, in ', h('b', {}, plural(cells.reduce((n, c) => n + c.runs, 0), 'simulated run')), '. Every cell opens the shortest story that gives its verdict.')),
      h('div', { id: 'tools-here' })),
    ui.missing, partial(), changes(),
    numbers(),
    cells.length > 0 && h('section', { id: 'matrix' }, h('h2', {}, 'What happened, by design and fault'), ui.filters, legend(), ui.scroll,
      h('p', { class: 'small' }, `First seed ${report.seed}. Rates are of the verdict that the letter names; their 95 % intervals (Wilson) stand in each cell\u2019s note and page. `,
        'A dot is not a proof: nothing was seen in so many runs, which bounds the rate only from above.', report.set && ` All runs with --set ${report.set}.`)),
    ui.fewest, figures(), ui.scenarios, about());
  ui.case = h('div', { class: 'case' });
  ui.viewer = h('div', {});
  root.replaceChildren(ui.entrance, ui.tip, ui.help);
  ui.entrance.querySelector('#tools-here').append(ui.tools);
  ui.scroll.addEventListener('click', openCell);
  ui.matrix.addEventListener('click', (e) => { const by = e.target.closest('[data-sort]'); if (by) choose({ sort: by.dataset.sort === state.sort ? '' : by.dataset.sort }); });
}

// partial says in a banner what a report that is not complete lacks.
function partial() {
  const broken = report.parts.filter((p) => p.state === 'interrupted').map((p) => p.name);
  const left = report.parts.filter((p) => p.state === 'left out').map((p) => p.name);
  return [
    broken.length > 0 && h('p', { class: 'banner', role: 'alert' }, h('b', {}, 'This report is partial. '), `It was interrupted: ${broken.join(', ')} ${broken.length > 1 ? 'are' : 'is'} not complete, and what is not shown was not run.`),
    left.length > 0 && h('p', { class: 'small' }, 'Left out, as asked for: ' + left.join(', ') + '.'),
    report.not_drawn > 0 && h('p', { class: 'small' }, `${plural(report.not_drawn, 'story', 'stories')} of ${told.length} ${report.not_drawn === 1 ? 'is' : 'are'} not drawn, to keep this page small; their plans and commands are here.`),
    report.quick && h('p', { class: 'small' }, 'A quick look: few runs, so that only what happens often can be seen.'),
  ];
}

// changes tells what became of an older report, if there is one.
function changes() {
  const x = report.changes;
  if (!x) return null;
  return h('details', { class: 'changes', open: x.cells.length < 30 }, h('summary', {}, `${plural(x.cells.length, 'cell')} changed since the older report, ${x.same.toLocaleString('en')} say the same`, x.note && '. Mind: ' + x.note),
    h('div', { class: 'table-scroll' }, h('table', { class: 'table' }, h('thead', {}, h('tr', {}, ['part', 'column', 'design', 'resource', 'what', 'before', 'now'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, x.cells.map((c) => h('tr', {}, [c.part, c.column, c.design, c.resource, c.what, c.old, h('b', {}, c.new)].map((t) => h('td', {}, t))))))));
}

const changed = new Set((report.changes ? report.changes.cells : []).filter((c) => c.part === 'matrix').map((c) => [c.design, c.resource, c.column].join(' ')));
const hasChanged = (c) => changed.has([c.pair.design.name, c.pair.resource.name, faults[c.fault].name].join(' '));

function numbers() {
  if (!cells.length) return null;
  const built = (c) => c && !faults[c.fault].operator; // against what a lock is built
  const worst = (p) => p.cells.filter(built).reduce((w, c) => Math.min(w, SEVERITY.indexOf(c.worst)), 9);
  const shown = pairs.filter((p) => p.cells.some(built));
  const two = shown.filter((p) => worst(p) === 0), unharmed = shown.filter((p) => worst(p) > 2);
  const number = (n, of, words, link) => h('div', { class: 'number' }, h('p', { class: 'big' }, h('b', {}, n), h('span', {}, ' of ' + of)), h('p', {}, words, ' ', link));
  const one = report.fewest.filter((f) => f.two >= 0 && f.two <= 1);
  const show = (words, changes) => h('a', { href: '#', onclick: (e) => { e.preventDefault(); choose({ ...CHOICES, ...changes }); ui.scroll.scrollIntoView(); } }, words);
  return h('section', { class: 'numbers', 'aria-label': 'The answer in numbers' },
    number(two.length, shown.length, 'pairs of a design and a resource let two owners write under some family of faults.', show('Worst first', { sort: 'worst' })),
    number(unharmed.length, shown.length, 'showed no harm: nobody wrote over a later owner, no update was lost, nobody was stuck.', null),
    report.fewest.length > 0 && number(one.length, report.fewest.length, 'need at most one fault for it, of those for which every placement of one fault was tried.', h('a', { href: '#fewest', onclick: (e) => { e.preventDefault(); ui.fewest.scrollIntoView(); } }, 'Fewest faults')),
    h('div', { class: 'number by-resource' }, h('p', {}, h('b', {}, 'It depends on what the resource checks'), ': designs with two writers, by resource'),
      h('ul', {}, report.resources.map((r) => {
        const of = shown.filter((p) => p.resource === r);
        if (!of.length) return null;
        const n = of.filter((p) => worst(p) === 0).length;
        const bar = h('span', { class: 'fill' });
        bar.style.width = 100 * n / of.length + '%';
        return h('li', { title: r.summary }, show(r.name, { resource: r.name }), h('span', { class: 'bar-ground' }, bar), h('span', { class: 'when' }, `${n} of ${of.length}`));
      }))),
    h('p', { class: 'small whole' }, 'Evicted or overwritten keys and restored snapshots, against which no lock is built, count in their column only.'));
}

function legend() {
  const entry = (verdict, words) => h('li', {}, h('span', { class: 'swatch ' + verdict }, LETTER[verdict]), ' ', words);
  return h('ul', { class: 'letters', 'aria-label': 'What the letters mean' },
    entry('two-writers', 'two writers: a write was accepted although a later owner had been at work'),
    entry('lost-update', 'an update was lost'), entry('stuck', 'stuck: somebody could not go on'),
    entry('fenced', 'fenced: the resource refused, nothing was harmed'), entry('safe', 'no harm was found'), changed.size > 0 && h('li', {}, h('span', { class: 'swatch changed' }, '\u00a0'), ' changed since the older report'), report.cannot.length > 0 && h('li', {}, h('span', { class: 'swatch cannot' }, 'n/a'), ' cannot be: nobody whom these faults could strike'),
    cells.some((c) => c.worst === 'vacuous') && entry('vacuous', 'vacuous: the faults never struck'));
}

function showFilters() {
  const select = (key, name, values) => {
    const el = h('select', { id: 'filter-' + key, onchange: () => choose({ [key]: el.value }) },
      values.map(([value, words]) => h('option', { value, selected: value === state[key] }, words)));
    return h('label', { class: state[key] ? 'set' : '' }, h('span', { class: 'what' }, name), el);
  };
  const focus = document.activeElement && document.activeElement.id;
  const seen = (list) => [...new Set(list)];
  if (document.activeElement !== ui.search) ui.search.value = state.q;
  const searching = document.activeElement === ui.search;
  const filters = [
    select('family', 'design family', [['', 'all'], ...seen(pairs.map((p) => p.design.family)).map((f) => [f, f])]),
    select('resource', 'resource', [['', 'all'], ...seen(pairs.map((p) => p.resource.name)).map((f) => [f, f])]),
    select('fault', 'faults', [['', 'all'], ...faults.map((f) => [f.name, f.name])]),
    select('verdict', 'verdict', [['', 'all'], ['harm', 'any harm'], ...SEVERITY.filter((v) => cells.some((c) => c.worst === v)).map((v) => [v, v])]),
    select('sort', 'sort', [['', 'as in the catalogue'], ['worst', 'worst first'], ...columns().map((f) => [faults[f].name, 'by ' + faults[f].name])]),
  ];
  if (!ui.searchLabel) ui.searchLabel = h('label', { class: 'search' }, h('span', { class: 'what' }, 'search'), ui.search);
  ui.clear = h('button', { type: 'button', class: 'quiet', id: 'clear', onclick: () => choose({ ...CHOICES }), disabled: entrance() === '#' }, 'show all');
  if (searching) { // the reader is typing: leave the field where it is
    [...ui.filters.children].forEach((el) => { if (el !== ui.searchLabel) el.remove(); });
    ui.searchLabel.before(...filters);
    ui.searchLabel.after(ui.clear, ui.count);
  } else refill(ui.filters, filters, ui.searchLabel, ui.clear, ui.count);
  if (focus && focus.startsWith('filter-')) document.getElementById(focus)?.focus();
}

function showEntrance() {
  showFilters();
  showMatrix();
  showFewest();
  showScenarios();
  document.title = data.title;
}

// -------------------------------------------------------------- 4. Matrix

const columns = () => faults.map((_, i) => i).filter((i) => !state.fault || faults[i].name === state.fault);
const suits = (c) => !!c && (!state.verdict || (state.verdict === 'harm' ? isHarm(c.worst) : c.worst === state.verdict));

function named(design, resource, family, more) {
  if (state.family && family !== state.family || state.resource && resource !== state.resource) return false;
  const all = [design, resource, ...more].join(' ').toLowerCase();
  return state.q.toLowerCase().split(/\s+/).every((word) => all.includes(word));
}

// rows are the pairs that are shown, in their order.
function rows() {
  const cols = columns();
  const list = pairs.filter((p) => named(p.design.name, p.resource.name, p.design.family, [p.design.summary]) &&
    (state.verdict ? cols.some((f) => suits(p.cells[f])) : cols.some((f) => p.cells[f] || p.cannot.has(f))));
  const grade = (c) => c ? SEVERITY.indexOf(c.worst) * 2 - c.rate : 99;
  const by = faults.findIndex((f) => f.name === state.sort);
  if (by >= 0) return list.sort((a, b) => grade(a.cells[by]) - grade(b.cells[by]) || a.at - b.at);
  if (state.sort !== 'worst') return list;
  const score = (p) => SEVERITY.slice(0, 3).map((v) => p.cells.filter((c) => c && c.worst === v && cols.includes(c.fault)).length);
  const scores = new Map(list.map((p) => [p, [...score(p), p.cells.reduce((sum, c) => sum + (c && isHarm(c.worst) ? c.rate : 0), 0)]]));
  return list.sort((a, b) => scores.get(b).reduce((d, x, i) => d || x - scores.get(a)[i], 0) || a.at - b.at);
}

function showMatrix() {
  if (!cells.length) return;
  const cols = columns(), list = rows(), grouped = !state.sort;
  const sorted = (name) => state.sort === name ? 'ascending' : null;
  ui.matrix.classList.toggle('single', cols.length === 1);
  ui.matrix.style.setProperty('--columns', cols.length);
  const head = h('thead', {}, h('tr', {}, h('th', { scope: 'col', class: 'corner' }, 'design', h('span', { class: 'res' }, 'resource')),
    cols.map((f) => h('th', { scope: 'col', class: faults[f].operator ? 'operator' : '', 'aria-sort': sorted(faults[f].name) },
      h('button', { type: 'button', 'data-sort': faults[f].name, title: faults[f].title + '; click to sort by it' }, faults[f].name.replace('-', '-\u200b'))))));
  let family = null, design = null;
  const body = h('tbody');
  for (const p of list) {
    if (grouped && p.design.family !== family) {
      family = p.design.family;
      const n = new Set(list.filter((o) => o.design.family === family).map((o) => o.design)).size;
      body.append(h('tr', { class: 'group' }, h('th', { colspan: cols.length + 1, scope: 'rowgroup' }, h('span', {}, family, h('i', {}, ' ' + plural(n, 'design'))))));
    }
    const again = grouped && p.design === design;
    design = p.design;
    body.append(h('tr', { class: again ? 'again' : '' },
      h('th', { scope: 'row', title: p.design.summary + ' \u2014 on ' + p.resource.name + ': ' + p.resource.summary },
        h('span', { class: 'des' }, p.design.name), h('span', { class: 'res' }, p.resource.name)),
      cols.map((f) => h('td', { class: faults[f].operator ? 'operator' : '' }, p.cells[f] ? cellButton(p.cells[f], cols.length === 1) : noCell(p, f)))));
  }
  if (!list.length) body.append(h('tr', {}, h('td', { colspan: cols.length + 1, class: 'nothing' }, 'Nothing suits these filters.')));
  ui.matrix.replaceChildren(head, body);
  const first = ui.matrix.querySelector('.cell');
  if (first) first.tabIndex = 0;
  ui.count.textContent = list.length === pairs.length ? plural(list.length, 'row') : `${list.length} of ${plural(pairs.length, 'row')}`;
}

function cellButton(c, wide) {
  const rate = c.worst === 'safe' || c.worst === 'vacuous' ? '' : short(c.rate);
  const sign = [h('b', {}, LETTER[c.worst] || '?'), rate && h('span', {}, rate)];
  return h('button', { type: 'button', tabindex: '-1', class: `cell ${wide ? 'wide' : c.worst}${suits(c) ? '' : ' dim'}${hasChanged(c) ? ' changed' : ''}`, 'data-cell': cells.indexOf(c), 'aria-label': cellWords(c).join('. ') },
    wide ? [h('span', { class: 'swatch ' + c.worst }, sign), h('span', { class: 'words' }, cellWords(c).slice(1).join('; '))] : sign);
}

function noCell(p, f) {
  if (!p.cannot.has(f)) return null;
  return h('span', { class: 'cannot', title: 'cannot be: nobody is there whom these faults could strike' }, 'n/a');
}

// cellWords says in words what a cell says by letter and colour.
function cellWords(c) {
  const out = [`${c.pair.design.name} on ${c.pair.resource.name}, ${faults[c.fault].title}`];
  if (isHarm(c.worst)) for (const o of c.verdicts.filter((v) => isHarm(v.answer))) out.push(`${o.answer} in ${o.runs} of ${plural(c.runs, 'run')}: ${o.rate}`);
  else out.push(`${c.worst}: no harm in ${plural(c.runs, 'run')}: below ${c.below} %`);
  if (c.story >= 0) out.push(`shortest story: ${fewestWords(told[c.story].faults)}${c.proven ? ', and fewer cannot do it' : ''}`);
  if (hasChanged(c)) out.push('changed since the older report');
  return out;
}

const fewestWords = (n) => n === 0 ? 'no fault at all' : plural(n, 'fault');

function openCell(e) {
  const el = e.target.closest('[data-cell]');
  if (el) location.hash = cellAddress(cells[+el.dataset.cell]);
}

// -------------------------------------------------------------- 5. Tables

function storyLink(n, words) { return n > 0 ? h('a', { href: storyAddress(told[n - 1]) }, words) : words; }

function showFewest() {
  if (!report.fewest.length) return;
  const list = report.fewest.filter((f) => named(pairs[f.p].design.name, pairs[f.p].resource.name, pairs[f.p].design.family, [pairs[f.p].design.summary]));
  const rank = (f) => f.two < 0 ? 9 : f.two;
  if (state.sort) list.sort((a, b) => rank(a) - rank(b) || b.placements - a.placements);
  const row = (f) => {
    const two = f.a.find((a) => text(a.a) === 'two-writers');
    const worst = f.two < 0 ? 'safe' : 'two-writers';
    return h('tr', {}, h('th', { scope: 'row' }, h('span', { class: 'des' }, pairs[f.p].design.name), h('span', { class: 'res' }, pairs[f.p].resource.name)),
      h('td', { class: 'num' }, h('span', { class: 'swatch ' + worst }, f.two < 0 ? '\u00b7' : f.two), ' ', f.two < 0 ? `none with ${f.max}` + (f.complete ? '' : ', so far') : ''),
      h('td', {}, two ? storyLink(two.t, two.f === 0 ? 'without any fault' : kindsWords(two)) : '', two && two.k.length > 1 && h('span', { class: 'kinds' }, two.k.map(([k, n, t]) => [h('span', {}, storyLink(t, text(k) || 'none'), ' \u00d7' + n), ' ']))),
      h('td', { class: 'num' }, f.two > 0 ? f.placements.toLocaleString('en') : ''),
      h('td', { class: 'num' }, f.n.toLocaleString('en')),
      h('td', { class: 'num' }, f.operator < 0 ? 'none' : f.operator));
  };
  refill(ui.fewest, h('h2', {}, 'How few faults let two write'),
    h('p', {}, 'Not by chance: one fault was placed everywhere it can strike, before and after each step of each client, request by request. ', h('b', {}, 'none with 1'), ' means that no such placement lets two write.'),
    h('div', { class: 'table-scroll' }, h('table', { class: 'table' }, h('thead', {}, h('tr', {}, ['design, resource', 'faults', 'the shortest story; others by kind of fault', 'placements', 'of runs', 'an operator\u2019s'].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, list.map(row)))));
}

const kindsWords = (a) => a.k.length === 1 ? text(a.k[0][0]) : 'shortest';

function showScenarios() {
  if (!report.scenarios.length) return;
  const family = (design) => (report.designs.find((d) => d.name === design) || {}).family || design.split('/')[0];
  const list = report.scenarios.filter((c) => named(text(c.d), text(c.r), family(text(c.d)), [report.titles[c.s].name, report.titles[c.s].summary]));
  const wrong = report.scenarios.filter((c) => !c.o).length;
  const row = (c, i) => {
    const verdict = text(c.w), expected = text(c.e), first = i === 0 || list[i - 1].s !== c.s;
    const words = h('span', {}, h('span', { class: 'swatch ' + verdict }, LETTER[verdict] || '?'), ' ', verdict);
    return h('tr', { class: first ? 'first' : '' },
      first && h('th', { scope: 'rowgroup', class: 'scenario', rowspan: list.filter((o) => o.s === c.s).length }, h('b', {}, report.titles[c.s].name), h('span', {}, report.titles[c.s].summary)),
      h('td', { class: 'who' }, h('span', { class: 'des' }, text(c.d)), h('span', { class: 'res' }, text(c.r))),
      h('td', {}, storyLink(c.t, words)),
      h('td', { class: c.o ? '' : 'differs' }, !expected ? '' : c.o ? '\u2713 as expected' : `\u2717 expected ${expected}; ${text(c.q)}`),
      h('td', { class: 'why' }, h('details', {}, h('summary', {}, text(c.y) ? 'why' : 'command'), text(c.y) && h('p', {}, text(c.y)), command(text(c.c), 'the command'))));
  };
  refill(ui.scenarios, h('h2', {}, 'The known stories, and what came of them'),
    h('p', {}, `${plural(report.titles.length, 'scenario')}, each with the designs it is about: `, wrong === 0 ? 'every run ended as its scenario expects.' : h('b', {}, plural(wrong, 'row') + ' did not end as expected.')),
    h('div', { class: 'table-scroll' }, h('table', { class: 'table scenarios' }, h('thead', {}, h('tr', {}, ['scenario', 'design, resource', 'verdict', 'expectation', 'why, and how to repeat it'].map((t) => h('th', { scope: 'col' }, t)))), h('tbody', {}, list.map(row)))));
}

function figures() {
  if (!report.figures.length) return null;
  return h('section', { id: 'plots' }, h('h2', {}, 'Plots'), h('div', { class: 'figures' }, report.figures.map((f) => {
    const [, width, height] = f.svg.match(/<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"/) || []; // its place is kept until it is loaded
    return h('figure', {}, h('img', { alt: text(f.title) + '. ' + text(f.reading), loading: 'lazy', src: 'data:image/svg+xml,' + encodeURIComponent(f.svg),
      width: width && Math.round(width * 4 / 3), height: height && Math.round(height * 4 / 3) }));
  })));
}

function about() {
  return h('section', { id: 'about' }, h('h2', {}, 'The designs and resources'),
    h('details', {}, h('summary', {}, plural(report.designs.length, 'design')), h('dl', { class: 'catalogue' }, report.designs.map((d) => [h('dt', {}, d.name), h('dd', {}, d.summary, ' ', h('span', { class: 'small' }, `tokens: ${d.tokens}. `, linked(d.source)))]))),
    h('details', {}, h('summary', {}, plural(report.resources.length, 'resource')), h('dl', { class: 'catalogue' }, report.resources.map((d) => [h('dt', {}, d.name), h('dd', {}, d.summary)]))),
    h('details', {}, h('summary', {}, plural(faults.length, 'family of faults', 'families of faults')), h('dl', { class: 'catalogue' }, faults.map((f) => [h('dt', {}, f.name), h('dd', {}, f.title, f.faults.length > 0 && h('span', { class: 'small' }, ' ' + f.faults.join(', ')))]))));
}

// ---------------------------------------------------------------- 6. Case

// harmful lists the cells with harm, in the order in which they are shown.
function harmful() {
  const cols = columns();
  return rows().flatMap((p) => cols.map((f) => p.cells[f]).filter((c) => c && isHarm(c.worst) && suits(c)));
}

function neighbour(by) {
  if (!place || !place.cell) return null;
  const list = harmful();
  const now = list.indexOf(place.cell);
  if (now >= 0) return list[now + by] || null;
  return by > 0 ? list[0] || null : list[list.length - 1] || null;
}

function copyable(words, label, lines) {
  const code = h('code', {}, lines ? words : words.split(' ').map((w, i) => [i > 0 && ' ', h('span', { class: 'word' }, w)])); // no option breaks at its hyphens
  const button = h('button', { type: 'button', class: 'quiet copy', 'aria-label': 'Copy ' + label, onclick: async () => {
    let done = true;
    try { await navigator.clipboard.writeText(words); } catch (e) { // not every viewer of files allows it
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      done = document.execCommand('copy');
    }
    button.textContent = done ? 'copied' : 'selected';
    setTimeout(() => { button.textContent = 'copy'; }, 1600);
  } }, 'copy');
  return { code, button };
}

function command(words, label) {
  const { code, button } = copyable(words, label);
  return h('div', { class: 'command' }, code, button);
}

function showCase(step) {
  const c = place.cell, t = c ? told[c.story] : place.story;
  const design = report.designs.find((d) => d.name === (c ? c.pair.design.name : t.design)) || { name: t.design, summary: '', source: '' };
  const resource = report.resources.find((r) => r.name === (c ? c.pair.resource.name : t.resource)) || { name: t.resource, summary: '' };
  const verdict = c ? c.worst : t.verdict;
  const move = (by, words, key) => { const to = neighbour(by); return h('a', { class: 'move' + (to ? '' : ' off'), href: to ? cellAddress(to) : null, title: to ? `${to.pair.design.name} on ${to.pair.resource.name}, ${faults[to.fault].name} (${key})` : 'there is none' }, words); };
  refill(ui.case,
    h('nav', { class: 'case-nav' }, h('a', { class: 'move', href: entrance(), title: 'Escape' }, '\u2190 the matrix'),
      c && move(-1, '\u2039 previous harm', 'p'), c && move(1, 'next harm \u203a', 'n'), ui.tools),
    h('header', { class: 'case-head' },
      h('h1', {}, design.name, h('span', {}, ' on '), resource.name, h('span', {}, c ? ', ' + faults[c.fault].title : '')),
      h('p', { class: 'what' }, design.summary, design.summary && '. ', h('b', {}, resource.name), ': ', resource.summary, design.source && ['. ', linked(design.source)])),
    h('div', { class: 'facts' }, seen(c, verdict), repeat(c, t), c && saved(c, t)),
    t && h('h2', { class: 'story-title' }, c ? 'The shortest story: ' : 'The story: ', fewestWords(t.faults), t.kinds && ` (${t.kinds})`),
    t && h('p', { class: 'story-words' }, storyWords(c, t)),
    t && (t.drawn >= 0 ? ui.viewer : h('p', { class: 'banner' }, 'This story is not drawn here, to keep the page small; the command tells it.')),
    t && plan(t));
  document.title = `${design.name} on ${resource.name}${c ? ', ' + faults[c.fault].name : ''}: ${verdict}`;
  if (t && t.drawn >= 0) viewer.tell(t.drawn, step);
}

// seen tells how often each verdict came.
function seen(c, verdict) {
  const [sign, words] = VERDICT[verdict] || ['hollow', ''];
  const table = (list, kind) => h('table', { class: 'rates' }, h('tbody', {}, list.map((o) => h('tr', {}, h('th', { scope: 'row' }, kind, o.answer), h('td', {}, plural(o.runs, 'run')), h('td', {}, o.rate)))));
  return h('section', { class: 'fact' }, h('h2', {}, 'What was seen'),
    h('p', {}, h('span', { class: 'answer verdict ' + verdict }, icon(sign), ' ', h('b', {}, verdict), h('span', { class: 'words' }, ' ' + words))),
    c && !isHarm(c.worst) && h('p', { class: 'bound' }, 'No harm: ', h('b', {}, `none in ${plural(c.runs, 'run')}: below ${c.below} %`), ', with 95 % confidence.'),
    c && table(c.verdicts, ''), c && table(c.locks, 'lock '),
    c && h('p', { class: 'small' }, `of ${plural(c.runs, 'run')}, with 95 % intervals`, c.panics > 0 && `; ${plural(c.panics, 'panic')}`));
}

function repeat(c, t) {
  return h('section', { class: 'fact' }, h('h2', {}, 'Repeat it'),
    t && [h('p', { class: 'what' }, 'the story below, in the report\u2019s directory'), command(t.command, 'the command of the story')],
    c && [h('p', { class: 'what' }, `the first run with this verdict, seed ${c.seed}`), command(c.command, 'the command of the run')]);
}

function saved(c, t) {
  if (!isHarm(c.worst)) return null;
  const link = (o) => {
    const cell = o.pair && o.pair.cells[c.fault];
    const words = [h('span', { class: 'swatch ' + o.verdict }, LETTER[o.verdict] || '?'), ' ', h('span', { class: 'des' }, o.pair ? o.pair.design.name : ''), ' on ', o.pair ? o.pair.resource.name : ''];
    return h('li', {}, cell ? h('a', { href: cellAddress(cell) }, words) : words);
  };
  return h('section', { class: 'fact' }, h('h2', {}, 'What would have saved you'),
    c.saved.length > 0 ? [h('p', { class: 'what' }, 'the same plan does no harm to'), h('ul', { class: 'saved' }, c.saved.map(link))]
      : h('p', {}, t ? 'Nothing that was tried: whatever else showed no harm in this column is harmed by this plan, or cannot follow it.' : 'Not looked for.'));
}

function storyWords(c, t) {
  const out = [];
  if (c && c.proven) out.push(t.faults === 0 ? 'It takes no fault.' : t.faults === 1 ? 'Fewer cannot do it: without a fault it does not happen.' : 'Fewer faults cannot do it: every placement was tried.');
  else if (t.shrunk) out.push('Nothing can be left out of it without losing its verdict; that fewer faults could do it some other way is not ruled out.');
  for (const w of t.words) out.push(w[0].toUpperCase() + w.slice(1) + '.');
  return out.join(' ');
}

function plan(t) {
  const { code, button } = copyable(t.plan, 'the plan', true);
  return h('section', { class: 'plan' }, h('h2', {}, 'The plan that made it'), h('p', { class: 'what' }, 'Also in ', h('code', {}, t.command.split(' ').pop()), ' beside this page; change it, and replay it.'),
    h('div', { class: 'plan-text' }, h('pre', {}, code), button));
}

// ---------------------------------------------------------------- 7. Keys

const KEYS = [
  ['arrows', 'move in the matrix'], ['Enter', 'open a cell'], ['Escape', 'back to the matrix'], ['/', 'search'], ['p n', 'previous, next cell with harm'],
  ['\u2190 \u2192', 'step through a story'], ['space', 'play it'], ['f', 'next finding'], ['[ ]', 'details one by one'], ['+ \u2212', 'zoom'], ['s', 'time to scale'], ['t', 'theme'], ['?', 'these keys'],
];

function keysDialog() {
  const dialog = h('dialog', { class: 'keys', 'aria-label': 'Keys' }, h('h2', {}, 'Keys'),
    h('dl', {}, KEYS.map(([key, words]) => [h('dt', {}, key.split(' ').map((k) => h('kbd', {}, k))), h('dd', {}, words)])),
    h('button', { type: 'button', onclick: () => dialog.close() }, 'close'));
  return dialog;
}

function toggleKeys() { if (ui.help.open) ui.help.close(); else ui.help.showModal(); }

// moveIn moves the focus from a cell of the matrix to another one.
function moveIn(el, dx, dy) {
  const row = el.closest('tr'), lines = [...ui.matrix.tBodies[0].rows].filter((r) => r.querySelector('.cell'));
  const x = [...row.cells].indexOf(el.closest('td'));
  const step = (y, x) => lines[y] && lines[y].cells[x] && lines[y].cells[x].querySelector('.cell');
  let y = lines.indexOf(row), to = null, nx = x;
  const ends = dx === Infinity || dx === -Infinity;
  if (ends) { const all = row.querySelectorAll('.cell'); to = dx > 0 ? all[all.length - 1] : all[0]; }
  while (!to) {
    y += dy; nx += dx;
    if (y < 0 || y >= lines.length || nx < 1 || nx >= row.cells.length) return;
    to = step(y, nx);
  }
  focusCell(to);
}

function focusCell(el) {
  ui.matrix.querySelectorAll('.cell[tabindex="0"]').forEach((o) => { o.tabIndex = -1; });
  el.tabIndex = 0;
  el.focus();
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0], PageUp: [0, -8], PageDown: [0, 8] };

function onKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || ui.help.open) { if (ui.help.open && e.key === '?') toggleKeys(); return; }
  const typing = e.target === ui.search;
  if (typing && e.key !== 'Escape' && e.key !== 'ArrowDown') return;
  const act = keyAct(e, typing);
  if (!act) return;
  e.preventDefault();
  e.stopPropagation();
  act();
}

function keyAct(e, typing) {
  const cell = e.target.closest && e.target.closest('.cell');
  if (place) {
    if (e.key === 'Escape' && !viewer.pinned()) return goBack;
    const by = { n: 1, p: -1 }[e.key];
    if (by) return () => { const to = neighbour(by); if (to) location.hash = cellAddress(to); };
    if (e.key === 't' && !ui.viewer.isConnected) return viewer.nextTheme; // else the viewer knows the key
    return e.key === '?' ? toggleKeys : null;
  }
  if (e.target.tagName === 'SELECT') return null;
  if (cell && MOVES[e.key]) return () => moveIn(cell, ...MOVES[e.key]);
  const first = ui.matrix.querySelector('.cell[tabindex="0"]');
  if (e.key === 'ArrowDown' && first && (typing || e.target === document.body)) return () => focusCell(first);
  if (e.key === 'Escape') return () => { hideTip(); if (typing || cell) document.activeElement.blur(); };
  return { '/': () => setTimeout(() => ui.search.focus()), /* later, so that the key is not typed */ '?': toggleKeys, t: viewer.nextTheme }[e.key] || null;
}

function showTip(el) {
  const c = cells[+el.dataset.cell];
  refill(ui.tip, cellWords(c).map((w, i) => h('p', { class: i === 0 ? 'first' : '' }, w)));
  ui.tip.hidden = false;
  const box = el.getBoundingClientRect(), tip = ui.tip.getBoundingClientRect();
  ui.tip.style.left = Math.max(6, Math.min(box.left, innerWidth - tip.width - 6)) + 'px';
  ui.tip.style.top = (box.bottom + 6 + tip.height > innerHeight - 6 ? box.top - tip.height - 6 : box.bottom + 6) + 'px';
}

function hideTip() { ui.tip.hidden = true; }

function watch() {
  document.addEventListener('keydown', onKey, true);
  const over = (e) => { const el = e.target.closest('.cell'); if (el && e.pointerType !== 'touch') showTip(el); else hideTip(); };
  ui.matrix.addEventListener('pointerover', over);
  ui.matrix.addEventListener('pointerleave', hideTip);
  ui.matrix.addEventListener('focusin', (e) => { if (e.target.matches('.cell:focus-visible')) showTip(e.target); });
  ui.matrix.addEventListener('focusout', hideTip);
  addEventListener('scroll', hideTip, { passive: true });
  addEventListener('hashchange', show);
}

// --------------------------------------------------------------- 8. Start

let left = 0; // how far the entrance was scrolled when it was left
let fresh = true; // the entrance was not drawn yet

function show() {
  const wasAt = place, to = read();
  if (!wasAt && to.place && !fresh) left = scrollY;
  place = to.place;
  hideTip();
  if (!place) {
    viewer.rest();
    if (wasAt || fresh) { root.replaceChildren(ui.entrance, ui.tip, ui.help); ui.entrance.querySelector('#tools-here').append(ui.tools); }
    ui.missing.hidden = !to.missing;
    showEntrance();
    if (wasAt) {
      scrollTo(0, left);
      const back = wasAt.cell && ui.matrix.querySelector(`[data-cell="${cells.indexOf(wasAt.cell)}"]`);
      if (back) { focusCell(back); hideTip(); }
    }
    fresh = false;
    return;
  }
  if (!wasAt) { root.replaceChildren(ui.case, ui.help); }
  const same = wasAt && wasAt.cell === place.cell && wasAt.story === place.story;
  showCase(to.step);
  fresh = false;
  if (!same) scrollTo(0, 0);
}

build();
viewer.embed(ui.viewer, stepAddress);
watch();
show();
};

