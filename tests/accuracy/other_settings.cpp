// How were FSDP and DeepSpeed set? Front doors: fsdp2_settings, deepspeed_settings.
#include <regex>

#include "tests/accuracy/problem_of_row.hpp"
#include "tests/accuracy/settings.hpp"

namespace zeroplan::accuracy {
namespace {

// "2025-02": when the code that ran was current. Versions of torchtitan have no numbers; rows cite
// a date with a commit, or a document named by its month.
std::string month_of(const Row& row) {
  const std::string text = row.version + ' ' + row.source;
  if (text.find("bcc09297a") != std::string::npos) return "2026-08";
  static const std::regex month("(?:^|[^0-9a-f])(20[12][0-9])-?(0[1-9]|1[0-2])");
  std::smatch found;
  if (!std::regex_search(text, found, month)) throw Skip("nothing dates its version");
  return found[1].str() + '-' + found[2].str();
}

// torchtitan computed the loss whole until 786e26f8e; its experiment of March 2025 (e23bb707d) had
// eight chunks as the later default has.
std::string loss_chunks(const Row& row) {
  if (row.family != "torchtitan") return "1";
  const bool chunked = row.notes.starts_with("Chunked cross entropy");
  return chunked || month_of(row) >= "2026-05" ? "8" : "1";
}

// llm-foundry's PURE keeps parameters, gradients and states in bf16.
std::string stored_type(const Row& row) {
  return row.precision.value_or("").starts_with("bf16 PURE") ? "bf16" : "fp32";
}

}  // namespace

std::vector<Override> fsdp2_settings(const Row& row) {
  return {{"training.dtype", stored_type(row)},
          {"training.mixed_precision_param", "bf16"},
          {"loss_chunks", loss_chunks(row)}};
}

std::vector<Override> deepspeed_settings(const Row& row) {
  std::vector<Override> set;
  const bool wide = row.sharding.gradient_type.value_or("").starts_with("fp32");
  if (wide) set.emplace_back("data_types.grad_accum_dtype", "fp32");
  if (row.sharding.reduce_bucket_size) {
    set.emplace_back("reduce_bucket_size", std::to_string(*row.sharding.reduce_bucket_size));
  }
  return set;
}

}  // namespace zeroplan::accuracy
