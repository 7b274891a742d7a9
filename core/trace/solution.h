// FlashInfer-Trace Solution and Trace: what exports write and other tools of the format read.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/trace/definition.h"

namespace fixit {

struct SourceFile {
  std::string path;  // relative, without `..`
  std::string content;
};

struct Solution {
  std::string name;
  std::string definition;
  std::string author;
  std::string language;  // cuda, cpp, triton, python
  std::string binding;   // tvm-ffi (also where the file says null), c, torch
  std::vector<std::string> target_hardware;
  std::string entry_point;  // file::symbol
  std::vector<std::string> dependencies;
  bool destination_passing_style = true;
  std::vector<SourceFile> sources;
  std::string description;
};

Result<Solution> parse_solution(std::string_view json, std::string_view where);
std::string write_solution(const Solution& solution);

struct TraceEvaluation {
  std::string status;  // FlashInfer-Trace status name: PASSED, INCORRECT_NUMERICAL, ...
  std::string hardware;
  std::map<std::string, std::string> libraries;  // "libs" of the environment
  std::string timestamp;                         // ISO 8601
  std::string log;
  std::optional<double> max_relative_error;
  std::optional<double> max_absolute_error;
  std::optional<double> latency_ms;
  std::optional<double> reference_latency_ms;
  std::optional<double> speedup_factor;
};

struct Trace {
  std::string definition;
  std::string workload_json;  // a bare workload, one line
  std::string solution;       // name of the solution; empty: a workload without one
  std::optional<TraceEvaluation> evaluation;
};

Result<Trace> parse_trace(std::string_view json, std::string_view where);
std::string write_trace(const Trace& trace);

}  // namespace fixit
