#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags/fast_forward.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/output_flags.h"
#include "study/astra.h"
#include "write/report.h"

namespace armilla {
namespace {

constexpr std::string_view kAstra1Profiles[] = {"astra", "native"};
constexpr std::string_view kReleases[] = {"final", "tutorials"};

// Runs that share tables read them, add their rows and write them back: one after the other.
// The folder itself is locked: a file for that would stay behind among the reports.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY)) {
    if (descriptor_ >= 0) ::flock(descriptor_, LOCK_EX);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

std::optional<std::string> read_if_there(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Astra1Command final : public Command {
 public:
  void declare(CLI::App& app) override {
    app_ = &app;
    const auto text = [&](const char* flag, std::string& value, const char* type, const char* help) {
      return app.add_option(flag, value, help)->type_name(type)->group("ASTRA-sim");
    };
    const auto number = [&](const char* flag, std::string& value, const char* help) {
      text(flag, value, "N", help)->capture_default_str();
    };
    const auto per_dimension = [&](const char* flag, std::vector<std::string>& values, const char* help) {
      app.add_option(flag, values, help)->type_name("N")->expected(1, 16)->delimiter(',')->group("ASTRA-sim");
    };
    text("--workload-configuration", request_.workload, "FILE", "text workload")->required();
    text("--system-configuration", request_.settings.system, "FILE", "system layer, key: value")->required();
    text("--network-configuration", request_.settings.network, "FILE", "network, JSON")->required();
    outputs_.add(app, "--path", path_, "write the reports there; made if missing", OutputKind::folder)
        ->group("ASTRA-sim");
    text("--run-name", report_name_, "NAME", "of this run in the reports")->capture_default_str();
    number("--num-passes", passes_, "training iterations");
    number("--num-queues-per-dim", queues_, "logical queues per dimension of the network");
    number("--comm-scale", comm_scale_, "multiplies the sizes of the workload");
    number("--compute-scale", compute_scale_, "multiplies its compute times");
    number("--injection-scale", injection_scale_, "multiplies the endpoint delay");
    number("--total-stat-rows", rows_, "runs that share the reports");
    number("--stat-row", row_, "which of them this is");
    text("--rendezvous-protocol", rendezvous_, "[BOOL]", "a handshake before each message")
        ->expected(0, 1)
        ->default_str("true");
    per_dimension("--units-count", request_.settings.units_count, "sizes of the network's dimensions");
    per_dimension("--links-count", request_.settings.links_count, "links of an NPU in each dimension");
    per_dimension("--link-bandwidth", request_.settings.link_bandwidth, "of a link in each dimension, GB/s");
    per_dimension("--link-latency", request_.settings.link_latency, "of a link in each dimension, ns");
    app.add_option("--profile", profile_, "whose rules: ASTRA-sim's, or Armilla's own for the same inputs")
        ->type_name("astra|native")
        ->capture_default_str();
    app.add_option(
           "--network", network_,
           "a network of Armilla's (armilla list networks) instead of the one of the files; their Garnet "
           "keys choose flit, with their settings")
        ->type_name("MODEL");
    declare_fast_forward(app, fast_forward_);
    app.add_option("--release", release_,
                   "rules of 1.0's final branch or of its tutorials and ns-3 branch (default: final, unless "
                   "only the tutorials read the files)")
        ->type_name("final|tutorials");
    app.add_flag("--blocking-input-gradient", blocking_input_gradient_,
                 "the same as --release tutorials, where transformers wait for each input gradient");
    app.add_flag("--simai", request_.simai,
                 "read the workload as SimAI does: expert groups, blocking gradients");
    output_.declare(app, outputs_);
    app.add_flag("--quiet", output_.quiet, "print the lines of the passes, no report")->group("Output");
  }

  void execute(const Session& session) override {
    SimulationOptions options = output_.options();
    options.progress = session.meter;
    options.chunks = true;  // of which its tables are made
    const std::int64_t rows = parse_flag(rows_, "--total-stat-rows", 1, 100'000);
    const std::int64_t row = parse_flag(row_, "--stat-row", 0, rows - 1);
    if (report_name_.find_first_of("/,\n") != std::string::npos)
      throw Error(fmt::format("--run-name {:.60}", report_name_), "contains a slash, a comma or a line end");
    Astra1Run done = run_astra1(request(), options);
    done.report.run_name = report_name_;
    done.report.total_stat_rows = rows;
    done.report.stat_row = row;
    for (const char* const flag : {"--run-name", "--total-stat-rows", "--stat-row"}) {
      if (path_.empty() && app_->get_option(flag)->count() > 0)
        done.run.warnings.push_back(
            fmt::format("{} has no effect: no reports are written without --path", flag));
    }
    write(session, done);
    const Session people = for_people(session, {output_.json, output_.trace});
    people.out << done.lines;
    if (!output_.quiet) people.out << '\n' << write_run_text(done.run, people.style());
  }

 private:
  Astra1Request request() const {
    Astra1Request request = request_;
    request.native = parse_choice(profile_, kAstra1Profiles, "--profile") == 1;
    if (fast_forward_ && network_.empty())
      throw Error("--fast-forward", "is for the packet network, and none is chosen", "--network packet");
    if (!network_.empty()) {
      request.network =
          parse_component(fast_forward_ ? with_fast_forward(network_) : network_, "--network " + network_);
    }
    if (!release_.empty())
      request.settings.tutorial_release = parse_choice(release_, kReleases, "--release") == 1;
    if (blocking_input_gradient_ && request.settings.tutorial_release == false)
      throw Error("--blocking-input-gradient", "is a rule of the tutorials' release", "omit --release final");
    if (blocking_input_gradient_) request.settings.tutorial_release = true;
    request.passes = parse_flag(passes_, "--num-passes", 1, 1'000'000);
    request.settings.queues_per_dimension = parse_flag(queues_, "--num-queues-per-dim", 1, 1 << 16);
    request.settings.injection_scale = parse_scale(injection_scale_, "--injection-scale");
    request.settings.rendezvous = parse_switch(rendezvous_, "--rendezvous-protocol");
    request.compute_scale = parse_scale(compute_scale_, "--compute-scale");
    request.comm_scale = parse_scale(comm_scale_, "--comm-scale");
    return request;
  }

  void write(const Session& session, const Astra1Run& done) const {
    if (path_.empty()) {
      output_.write(session, done.run);
      return;
    }
    std::string folder = path_;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    // Only a folder that exists can have been begun by another run.
    const FolderLock lock(folder);
    output_.write(session, done.run, write_astra1_report(done.report, folder, read_if_there), {folder});
  }

  const CLI::App* app_ = nullptr;
  Astra1Request request_;
  std::string path_, report_name_ = "unnamed run", profile_ = "astra", network_, release_,
                     rendezvous_ = "false";
  bool blocking_input_gradient_ = false, fast_forward_ = false;
  std::string passes_ = "1", queues_ = "1", comm_scale_ = "1", compute_scale_ = "1", injection_scale_ = "1";
  std::string rows_ = "1", row_ = "0";
  OutputFlags output_;
};

}  // namespace

std::unique_ptr<Command> make_astra1_command() {
  return std::make_unique<Astra1Command>();
}

}  // namespace armilla
