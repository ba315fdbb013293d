// Which call goes wrong? Front doors: at_call, at_allocation.
#include "tests/fake_gpu/fault.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

namespace zeroplan::fake {
namespace {

constexpr std::array<std::string_view, 7> kinds{"none", "error", "memory", "hang",
                                                "late", "lost",  "killed"};

constexpr long long nobody = -1;  // the rank of who is none

struct Plan {
  Fault fault = Fault::none;
  long long call = 0;

  Plan() {
    const char* text = std::getenv("FAKE_GPU_FAULT");
    if (text == nullptr || setting("FAKE_GPU_RANK", nobody) != setting("RANK", nobody)) return;
    const std::string_view word(text);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (word.substr(0, word.find('@')) == kinds[i]) fault = static_cast<Fault>(i);
    }
    call = std::atoll(text + word.find('@') + 1);
  }
};

const Plan plan;
std::atomic<long long> calls{0};
std::atomic<long long> last_allocation{0};
std::atomic<bool> no_room_given{false};

// Where a process ends by _Exit nothing is written; only whole runs are counted.
struct Counted {
  ~Counted() {
    const char* name = std::getenv("FAKE_GPU_CALLS");
    if (name == nullptr) return;
    const int file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string line = std::to_string(calls) + ' ' + std::to_string(last_allocation) + '\n';
    if (write(file, line.data(), line.size()) < 0) std::abort();
    close(file);
  }
} counted;

bool passed(Fault fault) {
  return plan.fault == fault && calls >= plan.call;
}

}  // namespace

long long setting(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

void hang() {
  for (;;) pause();
}

Fault at_call() {
  if (++calls != plan.call) return Fault::none;
  if (plan.fault == Fault::hang) hang();
  if (plan.fault == Fault::killed) std::raise(SIGKILL);
  return plan.fault == Fault::error ? Fault::error : Fault::none;
}

Fault at_allocation() {
  const Fault fault = at_call();
  last_allocation = calls.load();
  if (passed(Fault::memory) && !no_room_given.exchange(true)) return Fault::memory;
  return fault;
}

bool streams_stand() {
  return passed(Fault::late) || passed(Fault::lost);
}

bool peer_lost() {
  return passed(Fault::lost);
}

}  // namespace zeroplan::fake
