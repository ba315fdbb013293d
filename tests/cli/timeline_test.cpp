// The timeline in its four forms.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Json = nlohmann::json;

namespace {

const std::string question =
    "llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4 --zero 1 --recompute none";

Json json_of(const std::string& arguments) {
  const tests::Run run = tests::zeroplan(arguments + " --json");
  CAPTURE(arguments, run.errors);
  REQUIRE(run.errors.empty());
  return Json::parse(run.output);
}

// Reads the opcodes of plain data, as Python's pickle does.
Json unpickle(const std::string& bytes) {
  REQUIRE(bytes.substr(0, 2) == "\x80\x02");
  std::vector<Json> stack;
  std::vector<std::size_t> marks;
  const auto integer = [&](std::size_t at, int count) {
    std::uint64_t value = 0;
    for (int i = 0; i < count; ++i)
      value |= static_cast<std::uint64_t>(
                   static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]))
               << (8 * i);
    return value;
  };
  for (std::size_t i = 2; i < bytes.size();) {
    const char code = bytes[i++];
    switch (code) {
      case '.':
        REQUIRE(i == bytes.size());
        REQUIRE(stack.size() == 1);
        return stack.back();
      case 'X': {
        const auto length = static_cast<std::size_t>(integer(i, 4));
        stack.emplace_back(bytes.substr(i + 4, length));
        i += 4 + length;
        break;
      }
      case '\x8a':
        REQUIRE(bytes[i] == 8);
        stack.emplace_back(static_cast<std::int64_t>(integer(i + 1, 8)));
        i += 9;
        break;
      case '\x88':
        stack.emplace_back(true);
        break;
      case '\x89':
        stack.emplace_back(false);
        break;
      case ']':
        stack.push_back(Json::array());
        break;
      case '}':
        stack.push_back(Json::object());
        break;
      case '(':
        marks.push_back(stack.size());
        break;
      case 'e':
      case 'u': {
        const std::vector<Json> items(stack.begin() + static_cast<std::ptrdiff_t>(marks.back()),
                                      stack.end());
        stack.resize(marks.back());
        marks.pop_back();
        Json& container = stack.back();
        if (code == 'e') {
          for (const Json& item : items) container.push_back(item);
        } else {
          for (std::size_t k = 0; k + 1 < items.size(); k += 2)
            container[items[k].get<std::string>()] = items[k + 1];
        }
        break;
      }
      default:
        FAIL("opcode " << static_cast<int>(code));
    }
  }
  FAIL("no end");
  return {};
}

}  // namespace

TEST_CASE("the timeline's peak is what fit says", "[release]") {
  const Json fit = json_of("fit " + question);
  const Json steps = json_of("timeline " + question);
  REQUIRE(steps.at("schema") == "zeroplan.timeline/1");
  REQUIRE(steps.at("stage") == fit.at("peak").at("stage"));
  REQUIRE(steps.at("peak").at("allocated_bytes") == fit.at("peak").at("allocated_bytes"));
  REQUIRE(steps.at("peak").at("tensor") == fit.at("peak").at("tensor"));
}

TEST_CASE("the timeline lists the phases of a run, the highest of which fit answers") {
  const Json fit = json_of("fit " + question);
  const Json phases = json_of("timeline " + question).at("phases");
  REQUIRE(phases == fit.at("phases"));
  std::vector<std::string> names;
  std::int64_t reserved = 0;
  for (const Json& phase : phases) {
    names.push_back(phase.at("phase"));
    if (names.back() != "resume") reserved = phase.at("reserved_bytes");  // it only grows
  }
  REQUIRE(names == std::vector<std::string>{"init", "first_step", "forward", "backward", "resume"});
  REQUIRE(reserved == fit.at("peak").at("reserved_bytes"));
  const Json wide = json_of(
      "fit llama3-8b --gpus 1024xH100 --tp 1 --pp 1 --seq 512 --micro-batch 1 --recompute none");
  REQUIRE(wide.at("peak").at("phase") == "init");
  const std::string text = tests::zeroplan("timeline " + question).output;
  REQUIRE(text.find("first step") != std::string::npos);
}

TEST_CASE("categories add up after every event, and passes cover the step") {
  const Json steps = json_of("timeline " + question + " --stage 1");
  const Json& total = steps.at("allocated_bytes");
  REQUIRE(total.size() > 1000);
  for (std::size_t i = 0; i < total.size(); ++i) {
    std::int64_t sum = 0;
    for (const auto& [name, values] : steps.at("categories").items())
      sum += values.at(i).get<std::int64_t>();
    REQUIRE(sum == total.at(i));
  }
  std::size_t end = 0;
  for (const Json& pass : steps.at("passes")) {
    REQUIRE(pass.at("first_event").get<std::size_t>() >= end);
    end = pass.at("end_event").get<std::size_t>();
  }
  REQUIRE(end <= total.size());
}

TEST_CASE("a trace has the streams of every pipeline rank, and counters") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  REQUIRE(tests::zeroplan("timeline " + question + " --chrome-trace " + path.string()).exit_code ==
          0);
  struct Rank {
    double computed = 0;  // until when
    double counted = 0;
    int counters = 0;
    int passes = 0;
    std::map<std::string, int> slices;  // by category
  };
  std::map<int, Rank> ranks;
  const Json trace = Json::parse(contents(path));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") continue;
    Rank& rank = ranks[event.at("pid")];
    const double time = event.at("ts");
    if (event.at("ph") == "C") {
      REQUIRE(time >= rank.counted);
      rank.counted = time;
      ++rank.counters;
    } else if (event.at("ph") == "X") {
      ++rank.slices[event.at("cat")];
      if (event.at("cat") != "compute") continue;
      REQUIRE(time >= (1 - 1e-9) * rank.computed);
      rank.computed = time + event.at("dur").get<double>();
    } else {
      rank.passes += event.at("ph") == "b";
    }
  }
  REQUIRE(ranks.size() == 4);
  for (const auto& [number, rank] : ranks) {
    // Kernels, as every tensor, of the rank that was asked about alone.
    CHECK(rank.slices.contains("kernel") == (number == 0));
    CHECK(rank.slices.size() == (number == 0 ? 4 : 3));
    CHECK(rank.slices.contains("compute"));
    CHECK(rank.slices.contains("collective"));
    CHECK(rank.slices.contains("message"));
    CHECK(rank.passes == 12);  // 4 stages + 2 micro-batches, forward and backward
    CHECK(rank.counters > 50);
    CHECK(rank.counted > 0.5 * rank.computed);
  }
  CHECK(ranks[0].counters > 1000);  // the rank that was asked about
}

// Of a step so short that every rank shows all of it.
TEST_CASE("the times of all ranks' passes are those of the predicted step") {
  const std::string asked = question + " --global-batch 8 --micro-batch 1";
  const double step = json_of("fit " + asked).at("step").at("seconds");
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  double before = 0;
  for (const char* stage : {"0", "1", "2", "3"}) {
    const Json steps =
        json_of("timeline " + asked + " --stage " + stage + " --chrome-trace " + path.string());
    const Json& first = steps.at("passes").front();
    REQUIRE(first.at("start_seconds").get<double>() >= before);  // the pipeline fills
    before = first.at("end_seconds");
  }
  const Json trace = Json::parse(contents(path));
  REQUIRE(trace.at("otherData").at("micro_batches") == "2 of 2");
  double latest = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    latest = std::max(latest, event.at("ts").get<double>() + event.at("dur").get<double>());
  }
  REQUIRE(latest / 1e6 == Approx(step));
}

TEST_CASE("events name each tensor, call, block and kernel, in order of time") {
  const Json steps = json_of("timeline " + question + " --stage 1");
  std::map<std::string, std::int64_t> kinds;
  std::int64_t live = steps.at("resident_bytes");
  std::size_t tensors = 0;
  double now = 0;
  for (const Json& event : steps.at("events")) {
    const std::string kind = event.at("kind");
    ++kinds[kind];
    REQUIRE_FALSE(event.at("name").get<std::string>().empty());
    REQUIRE(event.at("seconds").get<double>() >= now);
    now = event.at("seconds");
    if (kind == "allocate" || kind == "free") {
      const std::int64_t bytes = event.at("bytes");
      live += kind == "allocate" ? bytes : -bytes;
      REQUIRE(live == steps.at("allocated_bytes").at(tensors++));
    } else if (kind == "collective" || kind == "message") {
      REQUIRE(event.at("ranks") >= 2);
      REQUIRE(event.at("bytes") > 0);
    }
  }
  REQUIRE(tensors == steps.at("allocated_bytes").size());
  REQUIRE(kinds.size() == 6);
  REQUIRE(kinds.at("kernel") > kinds.at("compute"));
}

TEST_CASE("a snapshot is a pickle in which every event finds its block") {
  for (const std::string mode : {"false", "true"}) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "snapshot.pickle";
    REQUIRE(tests::zeroplan("timeline " + question + " --set expandable_segments=" + mode +
                            " --snapshot " + path.string())
                .exit_code == 0);
    const Json snapshot = unpickle(contents(path));
    std::map<std::int64_t, std::int64_t> live;
    for (const Json& segment : snapshot.at("segments")) {
      std::int64_t next = segment.at("address");
      for (const Json& block : segment.at("blocks")) {
        REQUIRE(block.at("address") == next);  // blocks fill their segment
        next += block.at("size").get<std::int64_t>();
        if (block.at("state") == "active_allocated") live[block.at("address")] = block.at("size");
      }
      REQUIRE(next == segment.at("address").get<std::int64_t>() +
                          segment.at("total_size").get<std::int64_t>());
    }
    // Backwards from the end every allocation must be live, and nothing freed may be.
    const Json& events = snapshot.at("device_traces").at(0);
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
      const auto address = event->at("addr").get<std::int64_t>();
      REQUIRE_FALSE(event->at("frames").at(0).at("name").get<std::string>().empty());
      if (event->at("action") == "alloc") REQUIRE(live.erase(address) == 1);
      if (event->at("action") == "free_completed")
        REQUIRE(live.emplace(address, event->at("size")).second);
    }
  }
}

TEST_CASE("what the timeline cannot show is refused") {
  const auto refused = [](const std::string& arguments, const std::string& words) {
    const tests::Run run = tests::zeroplan("timeline " + arguments);
    REQUIRE(run.exit_code == 2);
    REQUIRE(run.output.empty());
    REQUIRE_THAT(run.errors, ContainsSubstring(words));
  };
  refused("7.5B --gpus 64xH100 --runtime zero-paper", "no layers");
  refused("llama3-8b --gpus 8xH100 --csv", "no rows");
  refused(question + " --stage 4", "--stage '4': must be a whole number from 0 to 3");
  refused(question + " --stage first", "--stage");
  refused(question + " --snapshot /nowhere/x", "/nowhere/x");
}

TEST_CASE("a quiet timeline is the line of the highest moment") {
  const tests::Run run = tests::zeroplan("timeline " + question + " --quiet");
  REQUIRE(run.exit_code == 0);
  REQUIRE(run.output.starts_with("stage 0 of 4, llama3-70b: at most "));
  REQUIRE(run.output.find('\n') == run.output.size() - 1);
}
