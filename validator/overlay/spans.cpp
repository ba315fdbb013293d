#include "validator/overlay/spans.hpp"

#include <algorithm>

namespace zeroplan {

std::vector<Span> covered(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::start);
  std::vector<Span> out;
  for (const Span& span : spans) {
    if (span.end <= span.start) continue;
    if (!out.empty() && span.start <= out.back().end) {
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
  }
  return out;
}

double length(std::span<const Span> spans) {
  double sum = 0;
  for (const Span& span : spans) sum += span.end - span.start;
  return sum;
}

double uncovered(const Span& one, std::span<const Span> spans) {
  double left = std::max(0.0, one.end - one.start);
  auto next = std::ranges::upper_bound(spans, one.start, {}, &Span::end);
  for (; next != spans.end() && next->start < one.end; ++next) {
    left -= std::min(one.end, next->end) - std::max(one.start, next->start);
  }
  return std::max(0.0, left);
}

}  // namespace zeroplan
