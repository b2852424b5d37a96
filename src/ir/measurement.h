// Measurements that somebody published or made: training steps, memory peaks, collectives and kernels, each
// with what was run. What is not known is 0 or empty.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace armilla {

// A step of training, by the columns of docs/validation.md.
struct MeasuredPlan {
  std::string model, device;  // as the source calls them
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, feed_forward = 0, vocabulary = 0;
  std::int64_t sequence = 0;
  double parameters = 0;
  std::int64_t devices = 1, devices_per_node = 0;
  double inter_bandwidth = 0;  // bytes per second, per device and direction
  std::int64_t tensor = 1, pipeline = 1, data = 0, context = 1, expert = 1;
  std::int64_t virtual_stages = 0, global_batch = 0;
  double micro_batch = 0;  // less than a sample where context parallelism divides it
  std::string precision, recompute, sequence_parallel, zero, schedule;
  std::string source, notes;
};

struct MeasuredStep {
  MeasuredPlan plan;
};

struct MeasuredPeak {
  MeasuredPlan plan;
  std::string scope;      // of which ranks: "last rank ..." or else the largest
  bool reserved = false;  // by the allocator, what it loses included; else allocated
};

struct MeasuredCollective {
  std::string system, kind;
  std::int64_t devices = 0, nodes = 1;
  std::int64_t bytes = 0;
};

struct MeasuredKernel {
  std::string device, operation, dtype;
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, queries = 0, keys = 0;
  std::string notes;
};

struct Measurement {
  std::string id, source;
  char tier = ' ';    // A: whole configuration, B: something assumed, C: never to be judged by
  std::string where;  // "training.csv:17"
  std::variant<MeasuredStep, MeasuredPeak, MeasuredCollective, MeasuredKernel> what;
  double value = 0;  // seconds; bytes of a peak; 0: nothing was measured
  // What of the row cannot be read ("tp: '0' is too few"), and what was expected; empty: nothing.
  std::string fault{}, expected{};
};

struct MeasurementFile {
  std::string path;
  std::string kind;  // "training", "memory", "collectives", "kernels"
  std::vector<Measurement> rows;
};

}  // namespace armilla
