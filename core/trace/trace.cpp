#include <cmath>

#include "core/trace/json_fields.h"
#include "core/trace/solution.h"
#include "core/trace/workload_json.h"

namespace fixit {
namespace {

// Which blocks an evaluation of a status must have; what it need not have it must not have.
struct StatusRule {
  std::string_view status;
  bool correctness;
  bool performance;
};
constexpr StatusRule kRules[] = {
    {"PASSED", true, true},
    {"INCORRECT_NUMERICAL", true, false},
    {"INCORRECT_SHAPE", false, false},
    {"INCORRECT_DTYPE", false, false},
    {"RUNTIME_ERROR", false, false},
    {"COMPILE_ERROR", false, false},
    {"TIMEOUT", false, false},
};

const StatusRule* rule_of(std::string_view status) {
  for (const auto& rule : kRules)
    if (rule.status == status) return &rule;
  return nullptr;
}

Json number_to_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// Absent: the schema's default, 0. `finite` where infinities and NaN mean nothing.
Result<double> measure(const JsonFields& fields, const char* key, bool finite) {
  if (!fields.has(key)) return 0.0;
  FIXIT_ASSIGN_OR_RETURN(const double value, fields.number(key));
  if (value < 0 || (finite && !std::isfinite(value))) return fields.error(key, "must be 0 or more");
  return value;
}

Status check_presence(const JsonFields& fields, const char* key, bool wanted, std::string_view status) {
  const bool present = fields.has(key) && !fields.is_null(key);
  if (present == wanted) return {};
  return fields.error(key, std::string(wanted ? "must be there" : "must be null") + " where status is " +
                               std::string(status));
}

Status parse_environment(const JsonFields& fields, TraceEvaluation& evaluation) {
  FIXIT_ASSIGN_OR_RETURN(const JsonFields environment, fields.object("environment"));
  FIXIT_ASSIGN_OR_RETURN(evaluation.hardware, environment.text("hardware"));
  if (!environment.has("libs")) return {};
  FIXIT_ASSIGN_OR_RETURN(const JsonFields libs, environment.object("libs"));
  for (const auto& item : libs.json().items()) {
    FIXIT_ASSIGN_OR_RETURN(evaluation.libraries[item.key()], libs.text_or(item.key().c_str(), ""));
  }
  return {};
}

Result<TraceEvaluation> parse_evaluation(const JsonFields& fields) {
  TraceEvaluation evaluation;
  FIXIT_ASSIGN_OR_RETURN(evaluation.status, fields.text("status"));
  const StatusRule* rule = rule_of(evaluation.status);
  if (rule == nullptr)
    return fields.error("status", "is `" + evaluation.status + "`, which the format does not know");
  FIXIT_RETURN_IF_ERROR(parse_environment(fields, evaluation));
  FIXIT_ASSIGN_OR_RETURN(evaluation.timestamp, fields.text("timestamp"));
  FIXIT_ASSIGN_OR_RETURN(evaluation.log, fields.text_or("log", ""));
  FIXIT_RETURN_IF_ERROR(check_presence(fields, "correctness", rule->correctness, rule->status));
  FIXIT_RETURN_IF_ERROR(check_presence(fields, "performance", rule->performance, rule->status));
  if (rule->correctness) {
    FIXIT_ASSIGN_OR_RETURN(const JsonFields correctness, fields.object("correctness"));
    FIXIT_ASSIGN_OR_RETURN(evaluation.max_relative_error, measure(correctness, "max_relative_error", false));
    FIXIT_ASSIGN_OR_RETURN(evaluation.max_absolute_error, measure(correctness, "max_absolute_error", false));
  }
  if (rule->performance) {
    FIXIT_ASSIGN_OR_RETURN(const JsonFields performance, fields.object("performance"));
    FIXIT_ASSIGN_OR_RETURN(evaluation.latency_ms, measure(performance, "latency_ms", true));
    FIXIT_ASSIGN_OR_RETURN(evaluation.reference_latency_ms,
                           measure(performance, "reference_latency_ms", true));
    FIXIT_ASSIGN_OR_RETURN(evaluation.speedup_factor, measure(performance, "speedup_factor", true));
  }
  return evaluation;
}

Json evaluation_to_json(const TraceEvaluation& evaluation) {
  const StatusRule* rule = rule_of(evaluation.status);
  Json json = Json::object();
  json["status"] = evaluation.status;
  json["environment"] = {{"hardware", evaluation.hardware}, {"libs", Json::object()}};
  for (const auto& [name, version] : evaluation.libraries) json["environment"]["libs"][name] = version;
  json["timestamp"] = evaluation.timestamp;
  json["log"] = evaluation.log;
  json["correctness"] = nullptr;
  json["performance"] = nullptr;
  if (rule != nullptr && rule->correctness)
    json["correctness"] = {{"max_relative_error", number_to_json(evaluation.max_relative_error.value_or(0))},
                           {"max_absolute_error", number_to_json(evaluation.max_absolute_error.value_or(0))}};
  if (rule != nullptr && rule->performance)
    json["performance"] = {
        {"latency_ms", number_to_json(evaluation.latency_ms.value_or(0))},
        {"reference_latency_ms", number_to_json(evaluation.reference_latency_ms.value_or(0))},
        {"speedup_factor", number_to_json(evaluation.speedup_factor.value_or(0))}};
  return json;
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, std::string_view where) {
  FIXIT_ASSIGN_OR_RETURN(const Json json, parse_json(text, where));
  FIXIT_ASSIGN_OR_RETURN(const JsonFields top, JsonFields::of(json, where, ""));
  Trace trace;
  FIXIT_ASSIGN_OR_RETURN(trace.definition, top.text("definition"));
  FIXIT_ASSIGN_OR_RETURN(const Json* workload, top.value("workload"));
  FIXIT_RETURN_IF_ERROR(workload_from_json(*workload, where, "workload").status());
  trace.workload_json = workload->dump(-1, ' ', false, Json::error_handler_t::replace);
  FIXIT_ASSIGN_OR_RETURN(trace.solution, top.text_or("solution", ""));
  if (!top.has("evaluation") || top.is_null("evaluation")) return trace;
  FIXIT_ASSIGN_OR_RETURN(const JsonFields fields, top.object("evaluation"));
  FIXIT_ASSIGN_OR_RETURN(trace.evaluation, parse_evaluation(fields));
  return trace;
}

std::string write_trace(const Trace& trace) {
  Json json = Json::object();
  json["definition"] = trace.definition;
  const auto workload = parse_json(trace.workload_json, "workload");
  json["workload"] = workload.ok() ? *workload : Json();
  json["solution"] = trace.solution.empty() ? Json() : Json(trace.solution);
  json["evaluation"] = trace.evaluation ? evaluation_to_json(*trace.evaluation) : Json();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fixit
