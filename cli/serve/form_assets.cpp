// How does the form look, and what does it remember? Front doors: form_style, form_script.
#include "cli/serve/form_assets.hpp"

namespace zeroplan {

std::string_view form_style() {
  return R"css(
.ask { margin-bottom: 24px; }
.ask .fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px 14px; }
.ask label { display: flex; flex-direction: column; gap: 3px; font-size: 0.85rem; min-width: 0; }
.ask input { font: inherit; padding: 5px 7px; min-width: 0; color: inherit; background: transparent;
  border: 1px solid var(--soft); border-radius: 4px; }
.ask input:focus-visible { outline: 2px solid var(--link); outline-offset: 0; }
.ask > .fields { grid-template-columns: repeat(4, minmax(0, 1fr)); }
.ask details { margin: 10px 0; }
@media (max-width: 700px) { .ask > .fields { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
.ask details .fields { margin-top: 10px; }
.ask .buttons, .history p { display: flex; flex-wrap: wrap; gap: 8px; }
.ask button, .history button { position: static; font: inherit; padding: 6px 12px; color: inherit; background: transparent;
  border: 1px solid var(--soft); border-radius: 4px; cursor: pointer; }
.ask button.first { color: var(--back); background: var(--link); border-color: var(--link); }
.ask button:disabled, .history button:disabled { opacity: 0.5; cursor: default; }
.history { margin-bottom: 24px; }
.ask details .buttons { margin-top: 10px; }
.history ol { padding-left: 0; list-style: none; }
.history li { display: flex; align-items: baseline; gap: 8px; padding: 5px 0; border-bottom: 1px solid var(--line); }
.history a { flex: 1; color: var(--link); text-decoration: none; overflow-wrap: anywhere; }
.history a:hover { text-decoration: underline; }
.history li button { padding: 0 8px; }
.error { border-left: 4px solid #d55e00; padding: 6px 12px; overflow-wrap: anywhere; }
@media print { .ask, .history { display: none; } }
)css";
}

std::string_view form_script() {
  return R"js(
const key = 'zeroplan.history';
const kept = 30;
function remembered() {
  try { return JSON.parse(localStorage.getItem(key)) || []; } catch { return []; }
}
function remember(list) {
  try { localStorage.setItem(key, JSON.stringify(list.slice(0, kept))); } catch { /* without it */ }
}
const asked = new URLSearchParams(location.search);
for (const [name, value] of [...asked]) if (!value) asked.delete(name, value);
const path = location.pathname.slice(1);
const sentence = document.querySelector('.sentence');
if (path && sentence && sentence.textContent && !document.querySelector('.error')) {
  const entry = { path, query: asked.toString(), says: summary() };
  remember([entry, ...remembered().filter(e => e.path !== path || e.query !== entry.query)]);
}
// What was asked, and the numbers that it is told by.
function summary() {
  const options = [...asked].filter(([name]) => name !== 'model' && name !== 'gpus').map(([name, value]) => name + ' ' + value);
  const values = [...document.querySelectorAll('.tiles div')].map(
    tile => [tile.querySelector('dt').textContent, tile.querySelector('dd').firstChild.textContent]);
  const told = values.filter(([name]) => ['memory', 'step', 'tokens/s a GPU'].includes(name)).map(
    ([name, value]) => name === 'memory' ? value : name === 'step' ? value + ' a step' : value + ' ' + name);
  return [path === 'fit' ? '' : path + ': ', document.querySelector('h1').textContent, options.length ? ', ' + options.join(', ') : '',
    ': ', [document.querySelector('.verdict').textContent, ...told].join(', ')].join('');
}
const history_ = document.querySelector('.history');
const both = history_.querySelector('.both');
function chosen() { return [...history_.querySelectorAll('input:checked')].map(box => remembered()[box.value]); }
function options(entry, common) {
  const words = [];
  for (const [name, value] of new URLSearchParams(entry.query)) {
    if (common.includes(name) || name === 'a' || name === 'b') continue;
    words.push(name === 'more' ? value : '--' + name + ' ' + value);
  }
  return words.join(' ');
}
function same(list, name) { return list.every(e => new URLSearchParams(e.query).get(name) === new URLSearchParams(list[0].query).get(name)); }
function look() {
  const list = chosen();
  both.disabled = list.length !== 2 || !same(list, 'model') || list.some(e => e.path === 'compare');
}
both.addEventListener('click', () => {
  const list = chosen();
  const common = ['model', 'gpus', 'runtime', 'cluster'].filter(name => same(list, name));
  const next = new URLSearchParams();
  for (const name of common) {
    const value = new URLSearchParams(list[0].query).get(name);
    if (value) next.set(name, value);
  }
  next.set('a', options(list[0], common));
  next.set('b', options(list[1], common));
  location.assign('compare?' + next);
});
history_.querySelector('.forget').addEventListener('click', () => { remember([]); show(); });
function show() {
  const list = history_.querySelector('ol');
  list.replaceChildren();
  remembered().forEach((entry, i) => {
    const row = document.createElement('li');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.value = i;
    box.setAttribute('aria-label', 'compare this plan');
    box.addEventListener('change', look);
    const link = document.createElement('a');
    link.href = entry.path + '?' + entry.query;
    link.textContent = entry.says;
    const drop = document.createElement('button');
    drop.type = 'button';
    drop.textContent = '\u00d7';
    drop.setAttribute('aria-label', 'forget this plan');
    drop.addEventListener('click', () => { remember(remembered().filter((_, j) => j !== i)); show(); });
    row.append(box, link, drop);
    list.append(row);
  });
  history_.hidden = !remembered().length;
  look();
}
show();
// A link says what was asked, no more.
document.querySelector('.ask').addEventListener('submit', event => {
  for (const field of event.target.querySelectorAll('input')) field.disabled = !field.value;
});
addEventListener('pageshow', () => {
  for (const field of document.querySelectorAll('.ask input')) field.disabled = false;
});
)js";
}

}  // namespace zeroplan
