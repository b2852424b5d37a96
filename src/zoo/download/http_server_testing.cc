#include "zoo/download/http_server_testing.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace armilla {
namespace {

constexpr int kPatienceMilliseconds = 20'000;

bool wait_for(int descriptor, short event, int stop) {
  pollfd waiting[] = {{descriptor, event, 0}, {stop, POLLIN, 0}};
  return ::poll(waiting, 2, kPatienceMilliseconds) > 0 && waiting[1].revents == 0;
}

bool send_all(int connection, std::string_view bytes, int stop) {
  while (!bytes.empty()) {
    if (!wait_for(connection, POLLOUT, stop)) return false;
    const ssize_t sent = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

ServedRequest parse_request(const std::string& text) {
  ServedRequest request;
  std::istringstream lines(text);
  std::string line, method;
  std::getline(lines, line);
  std::istringstream(line) >> method >> request.path;
  request.path = request.path.substr(0, request.path.find('?'));
  while (std::getline(lines, line) && line.size() > 1) {
    line.pop_back();
    const std::size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = line.substr(colon + 2);
  }
  return request;
}

struct Answer {
  std::string head;
  std::string_view body;
};

Answer compose(const ServedFile& file, const ServedRequest& request) {
  const auto header = [&](const char* name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? std::string() : found->second;
  };
  int status = file.status;
  std::string head;
  std::string_view body = file.body;
  if (!file.etag.empty()) head += fmt::format("ETag: {}\r\n", file.etag);
  if (!file.last_modified.empty()) head += fmt::format("Last-Modified: {}\r\n", file.last_modified);
  if (!file.location.empty()) head += fmt::format("Location: {}\r\n", file.location);

  const std::string range = header("range"), condition = header("if-range");
  const bool same = condition.empty() || condition == file.etag || condition == file.last_modified;
  if (file.ranges && same && range.starts_with("bytes=")) {
    const std::size_t first = std::stoul(range.substr(6));
    if (first >= file.body.size()) {
      status = 416;
      head += fmt::format("Content-Range: bytes */{}\r\n", file.body.size());
      body = {};
    } else {
      status = 206;
      head += fmt::format("Content-Range: bytes {}-{}/{}\r\n", first, file.body.size() - 1, file.body.size());
      body = body.substr(first);
    }
  }
  head = fmt::format("HTTP/1.1 {} Test\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n", status, head,
                     body.size());
  return {head, body};
}

}  // namespace

TestHttpServer::TestHttpServer() {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || ::bind(listener_, generic, size) != 0 || ::listen(listener_, 16) != 0 ||
      ::getsockname(listener_, generic, &size) != 0 || ::pipe(stop_) != 0)
    throw std::runtime_error("cannot listen on the loopback interface");
  port_ = ::ntohs(address.sin_port);
}

TestHttpServer::~TestHttpServer() {
  ::close(stop_[1]);
  if (thread_.joinable()) thread_.join();
  ::close(stop_[0]);
  ::close(listener_);
}

void TestHttpServer::start() {
  thread_ = std::thread([this] { run(); });
}

void TestHttpServer::serve(const std::string& path, ServedFile file) {
  const std::lock_guard lock(mutex_);
  files_[path] = std::move(file);
}

std::string TestHttpServer::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

std::vector<ServedRequest> TestHttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void TestHttpServer::run() {
  for (;;) {
    pollfd waiting[] = {{listener_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    ::poll(waiting, 2, -1);
    if (waiting[1].revents != 0) return;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    answer(connection);
    ::close(connection);
  }
}

void TestHttpServer::answer(int connection) {
  std::string text;
  while (text.find("\r\n\r\n") == std::string::npos) {
    char buffer[4096];
    if (!wait_for(connection, POLLIN, stop_[0])) return;
    const ssize_t size = ::recv(connection, buffer, sizeof buffer, 0);
    if (size <= 0) return;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  const ServedRequest request = parse_request(text);
  ServedFile file{.status = 404, .body = "<html>nothing here</html>"};
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (const auto found = files_.find(request.path); found != files_.end()) file = found->second;
  }
  const Answer answer = compose(file, request);
  std::string_view body = answer.body;
  if (file.breaks_after) body = body.substr(0, *file.breaks_after);
  if (!send_all(connection, answer.head, stop_[0])) return;
  while (!body.empty()) {
    constexpr std::size_t kPiece = 64 * 1024;
    pollfd stop{stop_[0], POLLIN, 0};
    if (file.pause.count() > 0 && ::poll(&stop, 1, static_cast<int>(file.pause.count())) != 0) return;
    if (!send_all(connection, body.substr(0, kPiece), stop_[0])) return;
    body.remove_prefix(std::min(body.size(), kPiece));
  }
}

}  // namespace armilla
