#include "base/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

extern char** environ;

namespace armilla {
namespace {

[[noreturn]] void refused(const std::string& program, int error) {
  throw Error(program, fmt::format("cannot be run: {}", std::strerror(error)));
}

// Both ends close themselves; neither is inherited unless it is duplicated.
struct Pipe {
  explicit Pipe(const std::string& program) {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) refused(program, errno);
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(std::size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{};  // to read from, to write to
};

// A program that ends early must not end us: its closed pipe is an error of write, not a signal.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~WithoutPipeSignal() { sigaction(SIGPIPE, &before_, nullptr); }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  struct sigaction before_ {};
};

// Feeds and drains all three pipes at once, so that neither side waits for the other for ever.
void exchange(Pipe& in, std::string_view input, Pipe& out, Pipe& err, ProgramOutput& output) {
  // Our writing end only: a child that does not read must not block us.
  fcntl(in.ends[1], F_SETFL, O_NONBLOCK);
  std::array<char, 1 << 16> buffer;
  for (;;) {
    if (input.empty()) in.close_end(1);
    if (in.ends[1] < 0 && out.ends[0] < 0 && err.ends[0] < 0) return;
    // A negative descriptor is skipped.
    std::array<pollfd, 3> waits = {pollfd{in.ends[1], POLLOUT, 0}, pollfd{out.ends[0], POLLIN, 0},
                                   pollfd{err.ends[0], POLLIN, 0}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) {
      const ssize_t count = write(in.ends[1], input.data(), input.size());
      if (count > 0)
        input.remove_prefix(static_cast<std::size_t>(count));
      else if (errno != EAGAIN && errno != EINTR)
        input = {};
    }
    const auto drain = [&](const pollfd& wait, Pipe& pipe, std::string& text) {
      if (wait.revents == 0) return;
      const ssize_t count = read(pipe.ends[0], buffer.data(), buffer.size());
      if (count > 0)
        text.append(buffer.data(), static_cast<std::size_t>(count));
      else if (count == 0 || errno != EINTR)
        pipe.close_end(0);
    };
    drain(waits[1], out, output.out);
    drain(waits[2], err, output.err);
  }
}

}  // namespace

std::optional<ProgramOutput> run_program(const std::vector<std::string>& arguments, std::string_view input) {
  const std::string& program = arguments.at(0);
  const WithoutPipeSignal guard;
  Pipe in(program), out(program), err(program);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.ends[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return std::nullopt;
  if (error != 0) refused(program, error);
  // The child has copies of its own; ours would keep its input open and its outputs from ending.
  in.close_end(0);
  out.close_end(1);
  err.close_end(1);
  ProgramOutput output;
  exchange(in, input, out, err, output);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // As a shell reports it: 128 plus the signal.
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

}  // namespace armilla
