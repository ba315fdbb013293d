// Where do ranks run where nothing was asked? Front doors: chosen_backend, gpus_at_hand.
#include "cli/validate/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/request/shell_word.hpp"

namespace zeroplan {
namespace {

// nvidia0, nvidia1, ...; dxg is the GPU of Windows' Linux.
bool is_gpu(const std::string& name) {
  constexpr std::string_view prefix = "nvidia";
  const bool numbered = name.size() > prefix.size() && name.starts_with(prefix) &&
                        std::all_of(name.begin() + prefix.size(), name.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
  return numbered || name == "dxg";
}

bool has_gpu_file(const std::filesystem::path& devices) {
  std::error_code error;
  std::filesystem::directory_iterator list(devices, error);
  return !error && std::any_of(begin(list), end(list), [](const auto& entry) {
    return is_gpu(entry.path().filename().string());
  });
}

// Standard output; empty where it failed.
std::string answer_of(const std::string& command) {
  struct Close {
    void operator()(std::FILE* pipe) const { pclose(pipe); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string text;
  if (!pipe) return text;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe.get())) {
    text.append(part.data(), got);
  }
  return text;
}

}  // namespace

ChosenBackend chosen_backend(const std::optional<Backend>& asked, const AtHand& at_hand) {
  if (asked) return {*asked, "as asked"};
  if (at_hand.gpus == 0) {
    return {Backend::host, at_hand.without.empty() ? "no GPU is visible" : at_hand.without};
  }
  const std::string_view are = at_hand.gpus == 1 ? " is" : "s are";
  const std::string visible = fmt::format("{} GPU{} visible", at_hand.gpus, are);
  if (at_hand.gpus > 1) return {Backend::nccl, visible};
  if (at_hand.ranks == 1) return {Backend::loopback, visible};
  return {Backend::nccl, fmt::format("{}, and {} ranks were started", visible, at_hand.ranks)};
}

AtHand gpus_at_hand(const std::filesystem::path& devices, const std::filesystem::path& program) {
  AtHand at_hand;
  if (!has_gpu_file(devices)) return at_hand;
  std::error_code error;
  if (!std::filesystem::exists(program, error)) {
    at_hand.without = "a GPU is there, but this zeroplan was built without CUDA and NCCL";
    return at_hand;
  }
  const std::string text =
      answer_of(shell_word(program.string()) + " probe --devices --json 2>/dev/null </dev/null");
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (list.is_array()) at_hand.gpus = static_cast<std::int64_t>(list.size());
  if (at_hand.gpus == 0) at_hand.without = "a GPU's file is there, but the driver shows none";
  return at_hand;
}

}  // namespace zeroplan
