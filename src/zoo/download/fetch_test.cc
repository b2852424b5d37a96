#include "zoo/fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/error.h"
#include "zoo/download/http_server_testing.h"
#include "zoo/download/sha256.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;

// Bytes with the outer form of an ONNX file: ir_version and a graph of `size` bytes that depend on `seed`.
std::string onnx_bytes(std::size_t size, unsigned seed = 1) {
  std::string bytes = "\x08\x08\x3a";
  for (std::size_t rest = size; rest > 0 || bytes.size() == 3; rest >>= 7)
    bytes += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>((i * 2654435761u * seed) >> 13);
  return bytes;
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Fetch : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / fmt::format("armilla-fetch-{}", ::getpid());
    fs::remove_all(root_);
    ::setenv("XDG_CACHE_HOME", root_.c_str(), 1);
    ::unsetenv("ARMILLA_ZOO_URL");
    server_.start();
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string folder() const { return (root_ / "armilla" / "models").string(); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    if (fs::exists(folder()))
      for (const auto& entry : fs::directory_iterator(folder())) names.insert(entry.path().filename());
    return names;
  }
  std::string error(const std::string& name_or_url, const FetchOptions& options = {}) {
    try {
      fetch_model(name_or_url, options);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  std::string header(std::size_t request, const std::string& name) const {
    const auto headers = server_.requests().at(request).headers;
    return headers.contains(name) ? headers.at(name) : "none";
  }

  fs::path root_;
  TestHttpServer server_;
};

TEST_F(Fetch, MakesAModelAtAnAddressUsableByName) {
  const std::string body = onnx_bytes(300'000);
  server_.serve("/a/tiny-net.onnx", {.body = body});
  std::vector<FetchProgress> progress;
  FetchOptions options;
  options.progress = [&](const FetchProgress& p) { progress.push_back(p); };
  EXPECT_EQ(find_cached_model("tiny-net"), std::nullopt);

  const FetchedModel model = fetch_model(server_.url("/a/tiny-net.onnx?raw=true"), options);

  EXPECT_EQ(model.name, "tiny-net");
  EXPECT_EQ(model.path, folder() + "/tiny-net.onnx");
  EXPECT_EQ(model.size.value, static_cast<std::int64_t>(body.size()));
  EXPECT_EQ(model.sha256, sha256(body));
  EXPECT_FALSE(model.verified);
  EXPECT_FALSE(model.was_there);
  EXPECT_EQ(contents(model.path), body);
  EXPECT_EQ(find_cached_model("tiny-net"), model.path);
  EXPECT_EQ(cached_models(), std::vector<std::string>{"tiny-net"});
  EXPECT_EQ(files(), (std::set<std::string>{"tiny-net.onnx", "tiny-net.onnx.source"}));
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress.back().received, model.size);
  EXPECT_EQ(progress.back().total, model.size);
}

TEST_F(Fetch, AsksTheServerOnlyForWhatIsNotThere) {
  server_.serve("/m.onnx", {.body = onnx_bytes(1000, 1)});
  server_.serve("/other/m.onnx", {.body = onnx_bytes(1000, 2)});
  fetch_model(server_.url("/m.onnx"), {});
  EXPECT_TRUE(fetch_model(server_.url("/m.onnx"), {}).was_there);
  EXPECT_EQ(server_.requests().size(), 1u);

  EXPECT_FALSE(fetch_model(server_.url("/other/m.onnx"), {}).was_there);
  EXPECT_EQ(contents(folder() + "/m.onnx"), onnx_bytes(1000, 2));

  server_.serve("/other/m.onnx", {.body = onnx_bytes(1000, 3)});
  EXPECT_TRUE(fetch_model(server_.url("/other/m.onnx"), {}).was_there);
  EXPECT_FALSE(fetch_model(server_.url("/other/m.onnx"), {.refresh = true}).was_there);
  EXPECT_EQ(contents(folder() + "/m.onnx"), onnx_bytes(1000, 3));
}

TEST_F(Fetch, FetchesAgainWhatWasDamagedInTheCache) {
  server_.serve("/m.onnx", {.body = onnx_bytes(1000)});
  const std::string path = fetch_model(server_.url("/m.onnx"), {}).path;
  std::ofstream(path, std::ios::app) << "damage";
  EXPECT_FALSE(fetch_model(server_.url("/m.onnx"), {}).was_there);
  EXPECT_EQ(contents(path), onnx_bytes(1000));
}

TEST_F(Fetch, DoesNotShadowACompiledInModel) {
  server_.serve("/resnet50.onnx", {.body = onnx_bytes(10)});
  const FetchedModel model = fetch_model(server_.url("/resnet50.onnx"), {});
  EXPECT_EQ(model.name, "");
  EXPECT_EQ(model.path, folder() + "/resnet50.onnx");
}

TEST_F(Fetch, TakesTheBaseAddressFromTheOptionsOrTheEnvironment) {
  server_.serve("/mirror/my-net.onnx", {.body = onnx_bytes(100, 1)});
  server_.serve("/zoo/my-net/main/my-net.onnx", {.body = onnx_bytes(100, 2)});

  const FetchedModel flat = fetch_model("my-net", {.base_url = server_.url("/mirror/")});
  EXPECT_EQ(flat.url, server_.url("/mirror/my-net.onnx"));
  EXPECT_EQ(contents(flat.path), onnx_bytes(100, 1));

  ::setenv("ARMILLA_ZOO_URL", server_.url("/zoo/{model}/main/{model}.onnx").c_str(), 1);
  const FetchedModel placed = fetch_model("my-net", {});
  EXPECT_EQ(placed.url, server_.url("/zoo/my-net/main/my-net.onnx"));
  EXPECT_EQ(contents(placed.path), onnx_bytes(100, 2));

  ::setenv("ARMILLA_ZOO_URL", "mirror.example", 1);
  EXPECT_EQ(error("my-net"),
            "ARMILLA_ZOO_URL=mirror.example: not an address that models can be fetched from\n"
            "  hint: it begins with https:// or http://");
}

TEST_F(Fetch, VerifiesTheZoosOwnChecksum) {
  const std::string body = onnx_bytes(100);
  server_.serve("/squeezenet1.1-7.onnx", {.body = body});
  EXPECT_EQ(error("squeezenet1.1-7", {.base_url = server_.url("/")}),
            fmt::format("{}: the file has SHA-256 {}, expected "
                        "1eeff551a67ae8d565ca33b572fc4b66e3ef357b0eb2863bb9ff47a918cc4088\n"
                        "  hint: it was damaged on the way or is another file; nothing of it was kept",
                        server_.url("/squeezenet1.1-7.onnx"), sha256(body)));
  EXPECT_EQ(files(), std::set<std::string>{});
}

TEST_F(Fetch, VerifiesAGivenChecksum) {
  const std::string body = onnx_bytes(100);
  server_.serve("/m.onnx", {.body = body});
  const std::string wrong(64, '0');
  EXPECT_EQ(error(server_.url("/m.onnx"), {.sha256 = wrong}),
            fmt::format("{}: the file has SHA-256 {}, expected {}\n"
                        "  hint: it was damaged on the way or is another file; nothing of it was kept",
                        server_.url("/m.onnx"), sha256(body), wrong));
  EXPECT_EQ(files(), std::set<std::string>{});

  std::string upper = sha256(body);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_TRUE(fetch_model(server_.url("/m.onnx"), {.sha256 = upper}).verified);

  EXPECT_EQ(error(server_.url("/m.onnx"), {.sha256 = "abc"}),
            "checksum abc: not a SHA-256\n"
            "  hint: it has 64 hexadecimal digits, as sha256sum prints them");
}

TEST_F(Fetch, GoesOnWhereABrokenDownloadStopped) {
  const std::string body = onnx_bytes(500'000);
  server_.serve("/m.onnx", {.body = body, .etag = "\"v1\"", .breaks_after = 200'000});
  EXPECT_EQ(error(server_.url("/m.onnx")),
            server_.url("/m.onnx") +
                ": the connection ended before the file did\n"
                "  hint: run the same command again: the download goes on where it stopped");
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx.part", "m.onnx.part.source"}));
  EXPECT_EQ(find_cached_model("m"), std::nullopt);
  EXPECT_EQ(cached_models(), std::vector<std::string>{});

  server_.serve("/m.onnx", {.body = body, .etag = "\"v1\""});
  const FetchedModel model = fetch_model(server_.url("/m.onnx"), {});
  EXPECT_EQ(model.resumed_from.value, 200'000);
  EXPECT_EQ(header(1, "range"), "bytes=200000-");
  EXPECT_EQ(header(1, "if-range"), "\"v1\"");
  EXPECT_EQ(contents(model.path), body);
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx", "m.onnx.source"}));
}

TEST_F(Fetch, StartsAgainWhenTheFileHasChanged) {
  server_.serve("/m.onnx", {.body = onnx_bytes(500'000, 1), .etag = "\"v1\"", .breaks_after = 200'000});
  error(server_.url("/m.onnx"));
  server_.serve("/m.onnx", {.body = onnx_bytes(400'000, 2), .etag = "\"v2\""});
  const FetchedModel model = fetch_model(server_.url("/m.onnx"), {});
  EXPECT_EQ(header(1, "if-range"), "\"v1\"");
  EXPECT_EQ(model.resumed_from.value, 0);
  EXPECT_EQ(contents(model.path), onnx_bytes(400'000, 2));
}

TEST_F(Fetch, StartsAgainWhenTheServerKnowsNoRanges) {
  const std::string body = onnx_bytes(500'000);
  server_.serve("/m.onnx", {.body = body, .etag = "\"v1\"", .ranges = false, .breaks_after = 200'000});
  error(server_.url("/m.onnx"));
  server_.serve("/m.onnx", {.body = body, .etag = "\"v1\"", .ranges = false});
  const FetchedModel model = fetch_model(server_.url("/m.onnx"), {});
  EXPECT_EQ(header(1, "range"), "bytes=200000-");
  EXPECT_EQ(model.resumed_from.value, 0);
  EXPECT_EQ(contents(model.path), body);
}

TEST_F(Fetch, GoesOnOnlyWithAnAnswerToWhetherTheFileIsStillTheSame) {
  const std::string body = onnx_bytes(500'000);
  // A weak ETag says that two files mean the same, not that they have the same bytes.
  server_.serve("/weak.onnx", {.body = body, .etag = "W/\"v1\"", .breaks_after = 200'000});
  error(server_.url("/weak.onnx"));
  error(server_.url("/weak.onnx"));
  EXPECT_EQ(header(1, "range"), "none");

  const std::string date = "Fri, 27 Jun 2025 21:38:12 GMT";
  server_.serve("/dated.onnx", {.body = body, .last_modified = date, .breaks_after = 200'000});
  error(server_.url("/dated.onnx"));
  error(server_.url("/dated.onnx"));
  EXPECT_EQ(header(3, "range"), "bytes=200000-");
  EXPECT_EQ(header(3, "if-range"), date);
}

TEST_F(Fetch, DoesNotMixTwoAddressesOfOneName) {
  server_.serve("/a/m.onnx", {.body = onnx_bytes(500'000, 1), .etag = "\"v1\"", .breaks_after = 200'000});
  server_.serve("/b/m.onnx", {.body = onnx_bytes(500'000, 2), .etag = "\"v1\""});
  error(server_.url("/a/m.onnx"));
  const FetchedModel model = fetch_model(server_.url("/b/m.onnx"), {});
  EXPECT_EQ(header(1, "range"), "none");
  EXPECT_EQ(contents(model.path), onnx_bytes(500'000, 2));
}

TEST_F(Fetch, TakesAPartThatIsComplete) {
  const std::string body = onnx_bytes(1000);
  fs::create_directories(folder());
  std::ofstream(folder() + "/m.onnx.part", std::ios::binary) << body;
  std::ofstream(folder() + "/m.onnx.part.source")
      << "url " << server_.url("/m.onnx") << "\nvalidator \"v1\"\nsha256 \n";
  server_.serve("/m.onnx", {.body = body, .etag = "\"v1\""});
  const FetchedModel model = fetch_model(server_.url("/m.onnx"), {});
  EXPECT_EQ(model.resumed_from, model.size);
  EXPECT_EQ(contents(model.path), body);
}

TEST_F(Fetch, StartsAgainWhenThePartIsLongerThanTheFile) {
  const std::string body = onnx_bytes(1000);
  fs::create_directories(folder());
  std::ofstream(folder() + "/m.onnx.part", std::ios::binary) << body << "more";
  std::ofstream(folder() + "/m.onnx.part.source")
      << "url " << server_.url("/m.onnx") << "\nvalidator \"v1\"\nsha256 \n";
  server_.serve("/m.onnx", {.body = body, .etag = "\"v1\""});
  EXPECT_EQ(contents(fetch_model(server_.url("/m.onnx"), {}).path), body);
}

TEST_F(Fetch, FollowsRedirectsButNotForEver) {
  server_.serve("/start.onnx", {.status = 302, .etag = "\"redirect\"", .location = "/there"});
  server_.serve("/there", {.body = onnx_bytes(10)});
  EXPECT_EQ(fetch_model(server_.url("/start.onnx"), {}).name, "start");
  server_.serve("/loop.onnx", {.status = 302, .location = "/loop.onnx"});
  EXPECT_EQ(error(server_.url("/loop.onnx")), server_.url("/loop.onnx") +
                                                  ": the server redirects more than 10 times\n"
                                                  "  hint: check the address");
  server_.serve("/file.onnx", {.status = 302, .location = "file:///etc/passwd"});
  EXPECT_EQ(error(server_.url("/file.onnx")), server_.url("/file.onnx") +
                                                  ": cannot fetch the file: Unsupported protocol\n"
                                                  "  hint: check the address, the network and the proxy");
}

TEST_F(Fetch, ReportsWhatTheServerRefuses) {
  EXPECT_EQ(error(server_.url("/missing.onnx")), server_.url("/missing.onnx") +
                                                     ": the server answered with HTTP status 404\n"
                                                     "  hint: check the address");
  server_.serve("/busy.onnx", {.status = 503, .body = "later"});
  EXPECT_EQ(error(server_.url("/busy.onnx")), server_.url("/busy.onnx") +
                                                  ": the server answered with HTTP status 503\n"
                                                  "  hint: try again later");
  server_.serve("/none.onnx", {.status = 204});
  EXPECT_EQ(error(server_.url("/none.onnx")), server_.url("/none.onnx") +
                                                  ": the server answered with HTTP status 204\n"
                                                  "  hint: check the address");
  EXPECT_EQ(files(), std::set<std::string>{});
}

TEST_F(Fetch, ReportsAServerThatIsNotThere) {
  std::string url;
  {
    const TestHttpServer gone;
    url = gone.url("/m.onnx");
  }
  EXPECT_EQ(error(url), url +
                            ": cannot fetch the file: Couldn't connect to server\n"
                            "  hint: check the address, the network and the proxy");
  EXPECT_EQ(files(), std::set<std::string>{});
}

TEST_F(Fetch, GivesUpOnASilentServer) {
  server_.serve("/m.onnx", {.body = onnx_bytes(1000), .pause = std::chrono::seconds(30)});
  EXPECT_EQ(error(server_.url("/m.onnx"), {.silence_seconds = 1}),
            server_.url("/m.onnx") +
                ": the server does not answer\n"
                "  hint: run the same command again: the download goes on where it stopped");
}

TEST_F(Fetch, RefusesWhatIsNoModel) {
  struct Case {
    std::string body, message;
  };
  const std::string truncated = onnx_bytes(1000).substr(0, 500);
  for (const Case& wrong :
       {Case{"\n<!DOCTYPE html><html>Sign in</html>",
             "the server sent a web page, not an ONNX model\n"
             "  hint: give the address of the file itself; on GitHub it has /raw/ in place of /blob/"},
        Case{"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
             "the server sent a Git LFS pointer, not the model itself\n"
             "  hint: the ONNX Model Zoo's files are at https://huggingface.co/onnxmodelzoo"},
        Case{"", "the server sent an empty file\n  hint: check the address"},
        Case{"plain text",
             "the file is not an ONNX model\n  hint: check the address; archives have to be unpacked first"},
        Case{truncated,
             "the file is not an ONNX model\n  hint: check the address; archives have to be unpacked "
             "first"}}) {
    server_.serve("/m.onnx", {.body = wrong.body, .etag = "\"v\""});
    EXPECT_EQ(error(server_.url("/m.onnx")), server_.url("/m.onnx") + ": " + wrong.message);
    EXPECT_EQ(files(), std::set<std::string>{});
  }
}

TEST_F(Fetch, KeepsThePartWhenTheDiskIsFull) {
  server_.serve("/m.onnx", {.body = onnx_bytes(500'000), .etag = "\"v1\""});
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100'000, before.rlim_max};
  auto* handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = error(server_.url("/m.onnx"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, folder() +
                         "/m.onnx.part: cannot write the file: File too large\n"
                         "  hint: make room and run the same command again: the download goes on where it "
                         "stopped");
  EXPECT_EQ(files(), (std::set<std::string>{"m.onnx.part", "m.onnx.part.source"}));
  EXPECT_EQ(fetch_model(server_.url("/m.onnx"), {}).resumed_from.value, 100'000);
}

TEST_F(Fetch, RefusesASecondFetchOfTheSameModelMeanwhile) {
  server_.serve("/m.onnx", {.body = onnx_bytes(1000)});
  fs::create_directories(folder());
  const std::string part = folder() + "/m.onnx.part";
  const int other = ::open(part.c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(error(server_.url("/m.onnx")),
            part + ": another process is fetching this model\n  hint: wait until it has finished");
  ::close(other);
  EXPECT_EQ(error(server_.url("/m.onnx")), "no error");
}

TEST_F(Fetch, RefusesNamesAndAddressesThatCannotBeMeant) {
  EXPECT_EQ(error("resnet152-v1-8"),
            "resnet152-v1-8: no such model in the ONNX Model Zoo\n  hint: did you mean 'resnet152-v1-7'?");
  EXPECT_EQ(error("vgg16"),
            "vgg16: is compiled in and needs no download\n  hint: did you mean 'vgg16-7', 'vgg16-12' or "
            "'vgg16-bn-7'?");
  EXPECT_TRUE(error("../../etc/passwd", {.base_url = server_.url("/")})
                  .starts_with("../../etc/passwd: no such model in the ONNX Model Zoo"));
  EXPECT_EQ(error("ftp://example.org/m.onnx"),
            "ftp://example.org/m.onnx: not an address that models can be fetched from\n"
            "  hint: it begins with https:// or http://");
  EXPECT_EQ(error("http://example.org/a b.onnx"),
            "http://example.org/a b.onnx: the address contains a space or a control character\n"
            "  hint: write a space as %20");
  for (const char* url : {"http://example.org", "http://example.org/", "http://example.org/.onnx",
                          "http://example.org/a/..", "http:///", "://"})
    EXPECT_NE(error(url), "no error") << url;
  EXPECT_EQ(error("http://example.org/models/"),
            "http://example.org/models/: the address does not end in a usable file name\n"
            "  hint: give the address of an .onnx file");
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Fetch, NeedsAFolderForItsCache) {
  server_.serve("/m.onnx", {.body = onnx_bytes(10)});
  std::ofstream(root_) << "a file where the folder should be";
  EXPECT_EQ(error(server_.url("/m.onnx")),
            folder() +
                ": cannot create the folder: Not a directory\n"
                "  hint: another cache folder can be chosen with XDG_CACHE_HOME");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(model_cache_directory(), "/home/someone/.cache/armilla/models");
  ::unsetenv("HOME");
  EXPECT_EQ(error(server_.url("/m.onnx")), server_.url("/m.onnx") +
                                               ": there is not a folder to keep models in\n"
                                               "  hint: set XDG_CACHE_HOME or HOME");
  EXPECT_EQ(find_cached_model("m"), std::nullopt);
  ::setenv("HOME", home.c_str(), 1);
}

TEST(FetchTable, HasOneWellFormedChecksumPerName) {
  std::set<std::string_view> names;
  for (const ZooDownload& download : zoo_downloads()) {
    EXPECT_TRUE(names.insert(download.name).second) << download.name;
    EXPECT_EQ(download.sha256.size(), 64u) << download.name;
    EXPECT_EQ(download.sha256.find_first_not_of("0123456789abcdef"), std::string_view::npos) << download.name;
    EXPECT_GT(download.size.value, 0) << download.name;
    EXPECT_FALSE(download.description.empty()) << download.name;
  }
}

// The child is forked before the server's thread exists, and told when to go.
TEST(FetchKilled, LeavesNoHalfFileAndIsGoneOnWith) {
  const fs::path root = fs::temp_directory_path() / fmt::format("armilla-killed-{}", ::getpid());
  ::setenv("XDG_CACHE_HOME", root.c_str(), 1);
  const std::string folder = model_cache_directory(), part = folder + "/m.onnx.part";
  const std::string body = onnx_bytes(4'000'000);
  TestHttpServer server;
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char signal = 0;
    if (::read(go[0], &signal, 1) == 1) fetch_model(server.url("/m.onnx"), {});
    ::_exit(0);
  }
  server.serve("/m.onnx", {.body = body, .etag = "\"v1\"", .pause = std::chrono::milliseconds(20)});
  server.start();
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  std::error_code ignored;
  for (int i = 0; i < 2000 && !(fs::exists(part) && fs::file_size(part, ignored) > 100'000); ++i)
    ::usleep(10'000);
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));

  const auto kept = static_cast<std::int64_t>(fs::file_size(part));
  EXPECT_GT(kept, 100'000);
  EXPECT_LT(kept, static_cast<std::int64_t>(body.size()));
  EXPECT_FALSE(fs::exists(folder + "/m.onnx"));
  EXPECT_EQ(find_cached_model("m"), std::nullopt);

  server.serve("/m.onnx", {.body = body, .etag = "\"v1\""});
  const FetchedModel model = fetch_model(server.url("/m.onnx"), {});
  EXPECT_EQ(model.resumed_from.value, kept);
  EXPECT_EQ(server.requests().at(1).headers.at("range"), fmt::format("bytes={}-", kept));
  EXPECT_EQ(contents(model.path), body);
  ::close(go[0]);
  ::close(go[1]);
  fs::remove_all(root);
}

}  // namespace
}  // namespace armilla
