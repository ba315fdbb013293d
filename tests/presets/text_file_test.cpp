#include "presets/text_file.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;

TEST_CASE("a text file is read whole") {
  const TemporaryFolder folder;
  CHECK(read_text_file(folder.write("a.json", "{}\n")) == "{}\n");
  const std::string large(300'000, ' ');
  CHECK(read_text_file(folder.write("b.json", large + "{}")) == large + "{}");
}

TEST_CASE("a file that cannot be a configuration is refused with its path") {
  const TemporaryFolder folder;
  const auto text = [&](const std::string& path) {
    return error_text([&] { read_text_file(path); });
  };
  CHECK(says(text((folder.path() / "none.json").string()), "none.json': no such file"));
  CHECK(says(text(folder.path().string()), "a directory"));
  CHECK(says(text(folder.write("empty.json", "")), "empty"));
  CHECK(says(text(folder.write("blank.json", " \n\t")), "empty"));
  CHECK(says(text(folder.write("binary.json", std::string_view("{\0}", 3))), "binary"));
  CHECK(says(text(folder.write("huge.json", std::string(17U << 20, ' '))), "larger than 16 MiB"));
  CHECK(says(text("/nowhere/\n/x"), "no such file"));
}

TEST_CASE("a file without permission is refused") {
  if (geteuid() == 0) return;  // the super-user may read everything
  const TemporaryFolder folder;
  const std::string path = folder.write("secret.json", "{}");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  CHECK(says(error_text([&] { read_text_file(path); }), "cannot be opened"));
}
