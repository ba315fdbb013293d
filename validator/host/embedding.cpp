// How do tokens become vectors on the host? Front door: HostDevice::embed.
#include <algorithm>
#include <numeric>
#include <vector>

#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

bool holds(const VocabularyPart& part, std::int32_t id) {
  return id >= part.first && id < part.first + part.rows;
}

}  // namespace

void HostDevice::embed(View<const std::int32_t> ids,
                       ConstHalf table,
                       const VocabularyPart& part,
                       Half y) {
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const std::int32_t id = ids.data[i];
    Bf16* row = y.data + i * y.columns;
    if (!holds(part, id)) {
      std::fill(row, row + y.columns, Bf16{});
      continue;
    }
    const Bf16* from = table.data + (id - part.first) * y.columns;
    std::copy(from, from + y.columns, row);
  }
}

// Tokens of one row add up in fp32, in their order, before the row's gradient is rounded.
void HostDevice::embed_gradient(View<const std::int32_t> ids,
                                ConstHalf dy,
                                const VocabularyPart& part,
                                Half dtable) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(ids.rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return ids.data[a] < ids.data[b]; });
  Scratch scratch(workspace_);
  float* sum = scratch.take(dy.columns);
  for (std::size_t i = 0; i < order.size();) {
    const std::int32_t id = ids.data[order[i]];
    std::fill(sum, sum + dy.columns, 0.0F);
    for (; i < order.size() && ids.data[order[i]] == id; ++i) {
      const Bf16* row = dy.data + order[i] * dy.columns;
      for (std::int64_t j = 0; j < dy.columns; ++j) sum[j] += widen(row[j]);
    }
    if (!holds(part, id)) continue;
    Bf16* to = dtable.data + (id - part.first) * dy.columns;
    for (std::int64_t j = 0; j < dy.columns; ++j) to[j] = narrow(widen(to[j]) + sum[j]);
  }
}

void HostDevice::add_positions(Half y, std::int64_t first, ConstHalf table, std::int64_t sequence) {
  for (std::int64_t row = 0; row < y.rows;) {
    const std::int64_t position = (first + row) % sequence;
    const std::int64_t count = std::min(y.rows - row, sequence - position);
    add(y.part(row, count), table.part(position, count));
    row += count;
  }
}

void HostDevice::positions_gradient(ConstHalf dy, Half dtable, std::int64_t sequence) {
  for (std::int64_t i = 0; i < sequence; ++i) {
    for (std::int64_t j = 0; j < dy.columns; ++j) {
      float sum = 0;
      for (std::int64_t row = i; row < dy.rows; row += sequence) {
        sum += widen(dy.data[row * dy.columns + j]);
      }
      Bf16& to = dtable.data[i * dy.columns + j];
      to = narrow(widen(to) + sum);
    }
  }
}

}  // namespace zeroplan::engine
