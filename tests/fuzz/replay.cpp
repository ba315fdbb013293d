// fuzz_replay [--runs N | --seconds N] [--seed N] [TARGET...]: the targets,
// over their seeds and these changed. What ends it is left in fuzz-TARGET.txt in the folder where
// it runs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "tests/draws.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/spoiler.hpp"

using namespace zeroplan;
using Clock = std::chrono::steady_clock;

namespace {

struct Asked {
  int runs = 0;  // 0: what the target says
  int seconds = 0;
  unsigned seed = 1;
  std::vector<std::string> names;
};

Asked asked_of(int argc, char** argv) {
  Asked asked;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (word == "--runs") {
      asked.runs = number();
    } else if (word == "--seconds") {
      asked.seconds = number();
    } else if (word == "--seed") {
      asked.seed = static_cast<unsigned>(number());
    } else {
      asked.names.push_back(word);
    }
  }
  return asked;
}

std::string current, kept;  // what is looked at, and the file for it

// As much of C++ as a handler may call.
void keep(int signal) {
  const int file = open(kept.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644);
  if (write(file, current.data(), current.size()) >= 0) close(file);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// How many were tried, and how many of them understood.
std::pair<int, int> look(const fuzz::Target& target, const Asked& asked) {
  const std::vector<std::string> seeds = fuzz::seeds_of(target);
  tests::Spoiler spoiler(asked.seed);
  kept = fmt::format("fuzz-{}.txt", target.name);
  const int runs = asked.seconds > 0 ? 1 << 30
                   : asked.runs > 0  ? asked.runs
                                     : tests::draws(target.runs);
  const Clock::time_point until = Clock::now() + std::chrono::seconds(asked.seconds);
  int tried = 0, understood = 0;
  for (; tried < runs && (asked.seconds == 0 || Clock::now() < until); ++tried) {
    const auto i = static_cast<std::size_t>(tried);
    const std::string& seed = seeds[i % seeds.size()];
    const std::string bytes = i < seeds.size() ? seed : spoiler.spoiled(seed + " ");
    current = bytes;
    understood += fuzz::understands(target, bytes) ? 1 : 0;
  }
  return {tried, understood};
}

}  // namespace

int main(int argc, char** argv) {
  const Asked asked = asked_of(argc, argv);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, keep);
  bool any = false;
  for (const fuzz::Target& target : fuzz::targets()) {
    if (!asked.names.empty() &&
        std::find(asked.names.begin(), asked.names.end(), target.name) == asked.names.end()) {
      continue;
    }
    const Clock::time_point begin = Clock::now();
    const auto [tried, understood] = look(target, asked);
    fmt::print("{:14}{:8} tried {:8} understood {:7.1f} s\n", target.name, tried, understood,
               std::chrono::duration<double>(Clock::now() - begin).count());
    std::fflush(stdout);
    // In a hurry it may see too few.
    fuzz::require(
        tests::sanitized || asked.seconds > 0 || understood * 100 >= tried * target.understood,
        "enough is understood that more than the door is tried");
    any = true;
  }
  fuzz::require(any, "there is such a target");
}
