// A small HTTP/1.1 server on the loopback interface for tests of downloads: one thread, one request per
// connection, byte ranges with If-Range, redirects, and the ways in which servers fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace armilla {

struct ServedFile {
  int status = 200;
  std::string body = {};
  std::string etag = {};                         // with its quotes; empty: no ETag header
  std::string last_modified = {};                // empty: no such header
  std::string location = {};                     // of a redirect
  bool ranges = true;                            // false: a Range header is ignored
  std::optional<std::size_t> breaks_after = {};  // bytes of the body, then the connection closes
  std::chrono::milliseconds pause{0};            // before every 64 KiB
};

struct ServedRequest {
  std::string path;                            // without a query
  std::map<std::string, std::string> headers;  // names in lower case
};

class TestHttpServer {
 public:
  TestHttpServer();  // binds; clients may connect from now on
  ~TestHttpServer();
  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  void start();  // serves, in a thread of its own
  void serve(const std::string& path, ServedFile file);
  std::string url(const std::string& path) const;  // "http://127.0.0.1:PORT/path"
  std::vector<ServedRequest> requests() const;

 private:
  void run();
  void answer(int connection);

  int listener_ = -1;
  int stop_[2] = {-1, -1};  // a pipe: closing its writing end ends the thread
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, ServedFile> files_;
  std::vector<ServedRequest> requests_;
  std::thread thread_;
};

}  // namespace armilla
