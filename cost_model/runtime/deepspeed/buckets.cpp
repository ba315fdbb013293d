// What do DeepSpeed's reduction buckets make of gradients? Front doors: owned_elements,
// scattered_elements, copied_elements.
#include "cost_model/runtime/deepspeed/buckets.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/question/units.hpp"

namespace zeroplan {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& sizes) {
  return std::reduce(sizes.begin(), sizes.end());
}

// Elements of gradients that buckets have taken in, tensor by tensor, when the one with this tensor
// is reduced: one larger than a bucket is reduced where it is (stage_1_and_2.py
// reduce_independent_p_g_buckets_and_remove_grads).
std::vector<std::int64_t> taken_in(const std::vector<std::int64_t>& sizes, std::int64_t bucket) {
  std::vector<std::int64_t> taken(sizes.size());
  std::int64_t all = 0;
  std::int64_t held = 0;  // in the bucket
  std::size_t first = 0;  // of it
  for (std::size_t i = 0; i <= sizes.size(); ++i) {
    if (i == sizes.size() || held + sizes[i] > bucket) {
      std::fill(taken.begin() + static_cast<std::ptrdiff_t>(first),
                taken.begin() + static_cast<std::ptrdiff_t>(i), all);
      held = 0;
      first = i;
    }
    if (i == sizes.size()) break;
    held += sizes[i];
    if (sizes[i] <= bucket) all += sizes[i];
  }
  return taken;
}

// Where in the flat buffer the gradients of a bucket lie, [from, to).
struct Bucket {
  std::int64_t from, to;
  bool one_tensor;
  std::size_t hand;  // the tensor whose gradient finds no room
};

// Calls `reduce` with each. Gradients come last tensor first, and a bucket is reduced when the next
// one finds no room: a larger one has it alone.
template <class Reduce>
void for_buckets(const std::vector<std::int64_t>& sizes, std::int64_t bucket, Reduce reduce) {
  std::int64_t low = sum(sizes);  // of the tensor at hand
  std::int64_t end = low;         // of what the bucket holds
  std::int64_t tensors = 0;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    if (tensors > 0 && end - low + *size > bucket) {
      const auto hand = static_cast<std::size_t>(sizes.rend() - size - 1);
      reduce(Bucket{low, end, tensors == 1, hand});
      end = low;
      tensors = 0;
    }
    low -= *size;
    ++tensors;
  }
  if (tensors > 0) reduce(Bucket{low, end, tensors == 1, 0});
}

template <class CopyOf>
Copies copies_of(const std::vector<std::int64_t>& sizes, std::int64_t bucket, CopyOf copy_of) {
  Copies copies;
  for_buckets(sizes, bucket, [&](const Bucket& full) {
    const std::int64_t copied = copy_of(full.from, full.to, full.one_tensor);
    copies.most = std::max(copies.most, copied);
    if (full.from > sizes.front()) copies.earlier.push_back({full.hand, copied});
    if (full.from == sizes.front()) copies.beside_last = copied;
    if (full.from == 0) copies.at_end = copied;
  });
  return copies;
}

// What of the flat buffer is one rank's.
struct Part {
  std::int64_t rank;
  std::size_t first;    // of the tensors that touch it
  std::int64_t end;     // of it
  std::int64_t owned;   // elements of those tensors
  std::int64_t widest;  // of their slices in it
};

template <class Visit>
void for_parts(const std::vector<std::int64_t>& sizes, std::int64_t ranks, Visit visit) {
  const std::int64_t part = ceil_div(sum(sizes), ranks);
  std::size_t first = 0;
  std::int64_t start = 0;  // of tensor `first`
  for (std::int64_t rank = 0; rank < ranks && first < sizes.size(); ++rank) {
    const std::int64_t low = rank * part;
    while (first < sizes.size() && start + sizes[first] <= low) start += sizes[first++];
    if (first == sizes.size()) break;
    Part own{rank, first, low + part, 0, 0};
    std::int64_t at = start;
    for (std::size_t i = first; i < sizes.size() && at < own.end; ++i) {
      own.owned += sizes[i];
      own.widest = std::max(own.widest, std::min(at + sizes[i], own.end) - std::max(at, low));
      at += sizes[i];
    }
    visit(own);
  }
}

// Where what has been reduced begins when the last tensor's gradient finds no room.
std::int64_t reduced_before_last(const std::vector<std::int64_t>& sizes, std::int64_t bucket) {
  std::int64_t start = sum(sizes);
  for_buckets(sizes, bucket, [&](const Bucket& full) {
    if (full.from > 0 && full.from <= sizes.front()) start = full.to;
    if (full.from == 0 && full.to > sizes.front()) start = full.to;
  });
  return start;
}

}  // namespace

Owned owned_elements(const std::vector<std::int64_t>& sizes,
                     std::int64_t ranks,
                     std::int64_t bucket) {
  const std::vector<std::int64_t> taken = taken_in(sizes, bucket);
  const std::int64_t reduced = reduced_before_last(sizes, bucket);
  const std::int64_t last = sum(sizes) - (sizes.empty() ? 0 : sizes.back());
  Owned result;
  for_parts(sizes, ranks, [&](const Part& part) {
    const auto take = [&](Owned::Most& most, std::int64_t elements) {
      if (elements > most.elements) most = {elements, part.rank};
    };
    take(result.any, part.owned);
    take(result.beside, part.owned - taken[part.first]);
    if (part.end > reduced) take(result.early, part.owned);
    if (part.end > reduced && part.end <= last) take(result.early_without_last, part.owned);
  });
  return result;
}

std::int64_t most_with_slice(const std::vector<std::int64_t>& sizes,
                             std::int64_t ranks,
                             std::int64_t owned,
                             std::int64_t slice) {
  std::int64_t most = 0;
  for_parts(sizes, ranks, [&](const Part& part) {
    most = std::max(most, owned * part.owned + slice * part.widest);
  });
  return most;
}

Copies scattered_elements(const std::vector<std::int64_t>& sizes,
                          std::int64_t ranks,
                          std::int64_t bucket) {
  const auto copied = [&](std::int64_t from, std::int64_t to, bool one_tensor) {
    return one_tensor && (to - from) % ranks == 0 ? 0 : to - from;
  };
  return copies_of(sizes, bucket, copied);
}

AtOnce reduced_at_once(std::int64_t from, std::int64_t to, std::int64_t part, std::int64_t bucket) {
  AtOnce most;
  for (std::int64_t begin = from, at = from; at < to;) {
    const bool several = at > begin;
    at = std::min(to, (at / part + 1) * part);
    if (at < to && at - begin <= bucket) continue;
    most.any = std::max(most.any, at - begin);
    if (several) most.of_several = std::max(most.of_several, at - begin);
    begin = at;
  }
  return most;
}

Copies copied_elements(const std::vector<std::int64_t>& sizes,
                       std::int64_t ranks,
                       std::int64_t bucket) {
  const std::int64_t part = std::max<std::int64_t>(1, ceil_div(sum(sizes), ranks));
  const auto copied = [&](std::int64_t from, std::int64_t to, bool) {
    return reduced_at_once(from, to, part, bucket).of_several;
  };
  return copies_of(sizes, bucket, copied);
}

}  // namespace zeroplan
