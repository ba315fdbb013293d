// What does a page do? Front door: page_script.
#include "cli/page/page_assets.hpp"

namespace zeroplan {

std::string_view page_script() {
  return R"js('use strict';
for (const block of document.querySelectorAll('.code')) {
  if (!navigator.clipboard) break;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'copy';
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(block.querySelector('code').textContent).then(
      () => { button.textContent = 'copied'; },
      () => { button.textContent = 'not copied'; });
    setTimeout(() => { button.textContent = 'copy'; }, 2000);
  });
  block.append(button);
}
let folded = [];
addEventListener('beforeprint', () => {
  folded = [...document.querySelectorAll('details:not([open])')];
  for (const part of folded) part.open = true;
});
addEventListener('afterprint', () => {
  for (const part of folded) part.open = false;
});
)js";
}

}  // namespace zeroplan
