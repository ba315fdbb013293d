// Who asks a line, and who writes its answer when? Front door: answer_lines.
#include "cli/batch/batch.hpp"

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/out/standard_output.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_line = std::size_t{1} << 20;
constexpr std::size_t most_waiting = 256;  // answers that one slow question keeps back

std::string one_line(std::int64_t number, const Json& fields) {
  Json out{{"line", number}};
  out.update(fields);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string failed_line(std::int64_t number, const std::exception& error, ExitCode code) {
  return one_line(number, {{"schema", "zeroplan.refused/1"},
                           {"error", error.what()},
                           {"exit_code", static_cast<int>(code)}});
}

// States of a question: read; asked; answered, behind others; written.
class Batch {
 public:
  using Answer = std::function<BatchAnswer(const std::string&)>;

  Batch(std::istream& questions, const Answer& answer) : questions_(questions), answer_(answer) {}

  // Until there are no more lines, or nobody takes the answers. Of every worker.
  void work() {
    while (const auto question = next()) {
      try {
        put(question->place, answered(*question));
      } catch (...) {
        const std::lock_guard lock(answers_mutex_);
        if (!failure_) failure_ = std::current_exception();
        room_.notify_all();
      }
    }
  }

  ExitCode outcome() const {
    if (failure_) std::rethrow_exception(failure_);
    if (asked_ == 0) throw InputError("--batch: no line asks anything");
    return refused_ ? ExitCode::bad_input : yes_ ? ExitCode::yes : ExitCode::no;
  }

 private:
  struct Question {
    std::size_t place;    // among questions
    std::int64_t number;  // of its line
    std::string line;
  };
  struct Reply {
    std::string text;
    ExitCode code;
  };

  std::optional<Question> next() {
    const std::lock_guard lock(questions_mutex_);
    {
      std::unique_lock answers(answers_mutex_);
      room_.wait(answers, [&] { return failure_ || asked_ < written_ + most_waiting; });
      if (failure_) return std::nullopt;
    }
    for (std::string line; std::getline(questions_, line);) {
      ++lines_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      const std::size_t first = line.find_first_not_of(" \t");
      if (first == std::string::npos || line[first] == '#') continue;
      return Question{asked_++, lines_, line.substr(first)};
    }
    return std::nullopt;
  }

  Reply answered(const Question& question) const {
    try {
      if (question.line.size() > longest_line) throw InputError("the line is too long");
      const BatchAnswer answer = answer_(question.line);
      return {one_line(question.number, Json::parse(answer.document)), answer.code};
    } catch (const InputError& error) {
      return {failed_line(question.number, error, ExitCode::bad_input), ExitCode::bad_input};
    } catch (const std::exception& error) {
      return {failed_line(question.number, error, ExitCode::environment), ExitCode::environment};
    }
  }

  void put(std::size_t place, Reply reply) {
    const std::lock_guard lock(answers_mutex_);
    waiting_.emplace(place, std::move(reply));
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == written_;
         first = waiting_.erase(first), ++written_) {
      write_answer(first->second.text);
      yes_ = yes_ || first->second.code == ExitCode::yes;
      refused_ = refused_ || first->second.code > ExitCode::no;
    }
    room_.notify_all();
  }

  std::istream& questions_;
  const Answer& answer_;
  std::mutex questions_mutex_;  // held while a line is awaited, and before the other
  std::int64_t lines_ = 0;
  std::atomic<std::size_t> asked_ = 0;
  std::mutex answers_mutex_;
  std::condition_variable room_;
  std::map<std::size_t, Reply> waiting_;
  std::size_t written_ = 0;
  bool yes_ = false, refused_ = false;
  std::exception_ptr failure_;
};

}  // namespace

ExitCode answer_lines(const std::string& file, std::size_t workers, const Batch::Answer& answer) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened) throw InputError(fmt::format("--batch: cannot read {}", in_quotes(file)));
  }
  Batch batch(file == "-" ? std::cin : opened, answer);
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < workers; ++i) others.emplace_back([&] { batch.work(); });
  batch.work();
  others.clear();
  return batch.outcome();
}

}  // namespace zeroplan
