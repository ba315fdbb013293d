// What a trace tells, and what is said of a file that is none; files that are nearly right:
// tests/fuzz/traces.cpp.

#include "cli/overlay/kineto_reader.hpp"
#include "cli/overlay/pickle_reader.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/traced_step.hpp"
#include "validator/overlay/measured_step.hpp"

using namespace zeroplan;

namespace {

const std::string traced{tests::traced_step};

}  // namespace

TEST_CASE("a trace is read with its steps, collectives, launches and copies") {
  const TemporaryFolder folder;
  const Trace trace = read_kineto(folder.write("t.json", traced));
  CHECK(trace.on_device);
  CHECK(trace.rank == 1);
  CHECK(trace.world == 8);
  CHECK(trace.gpu == "NVIDIA H100");
  REQUIRE(trace.events.size() == 4);
  const MeasuredStep step = measured_step(trace);
  CHECK(step.name == "ProfilerStep#3");
  const StepWork& work = step.work;
  CHECK(work.at(Work::products).count == 1);
  CHECK(work.at(Work::optimizer).count == 1);  // launched in its window, run after the step's
  CHECK(work.at(Work::copies).count == 1);
  REQUIRE(work.calls.size() == 1);
  CHECK(work.calls.front().collective == Collective::all_gather);
  CHECK(work.calls.front().ranks == 8);
  CHECK(work.calls.front().payload == 128);
  // From 1050 to 1070 nothing computes beside it.
  CHECK(std::abs(work.calls.front().work.exposed - 20e-6) < 1e-12);
  CHECK(std::abs(work.seconds - 127e-6) < 1e-12);
  CHECK(std::abs(work.at(Work::idle).seconds - (127 - 2 - 60 - 8) * 1e-6) < 1e-12);
}

TEST_CASE("what is no trace is said to be none") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& text, const std::string& words) {
    CAPTURE(text.substr(0, 60));
    REQUIRE_THROWS_WITH(read_kineto(folder.write("t.json", text)), ContainsSubstring(words));
  };
  refuses("\x1f\x8b\x08 and so on", "is compressed");
  refuses("", "is cut off");
  refuses(traced.substr(0, traced.find("\"cat\": \"kernel\"")), "is cut off after");
  refuses(traced.substr(0, traced.size() / 2), "is cut off after");  // within a text
  refuses("[]", "neither kernels");
  refuses("{}", "no \"traceEvents\"");
  refuses(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1}]})", "no usable");
  refuses(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -1}]})",
          "no usable");
  refuses("import this", "is no JSON at byte");
  REQUIRE_THROWS_WITH(read_kineto(folder.path().string()), ContainsSubstring("is a folder"));
  REQUIRE_THROWS_WITH(read_kineto("/nowhere/t.json"), ContainsSubstring("cannot be read"));
}

TEST_CASE("a pickle that would run something is refused") {
  const auto refuses = [](const std::string& bytes, const std::string& words) {
    REQUIRE_THROWS_WITH(Pickle(bytes, "p"), ContainsSubstring(words));
  };
  refuses(
      "\x80\x02"
      "cos\nsystem\nX\x02\x00\x00\x00ls\x85R.",
      "opcode 0x63");
  refuses("(dp0\n.", "no pickle of protocol 2 to 5");
  refuses(std::string("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", 11), "cut off within a text");
  refuses("\x80\x02]", "is cut off");
  refuses(
      "\x80\x02"
      "e.",
      "since a mark");
  refuses("\x80\x02h\x05.", "has not made");
}
