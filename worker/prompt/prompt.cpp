#include "worker/prompt/prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/trace/definition.h"
#include "worker/prompt/c_declaration.h"
#include "worker/prompt/task_text.h"

namespace fixit {
namespace {

std::string compile_command(const GpuConfig& gpu) {
  std::string command =
      gpu.target == TargetKind::kCpu
          ? fmt::format("g++ -O3 -std=c++20 -march={} -fPIC -shared", gpu.arch)
          : fmt::format("nvcc -O3 -std=c++17 -lineinfo -cudart shared -arch={} -shared", gpu.arch);
  for (const std::string& flag : gpu.compile_flags) command += " " + flag;
  return command + (gpu.target == TargetKind::kCpu ? " kernel.cpp -o kernel.so" : " kernel.cu -o kernel.so");
}

std::string target_text(const GpuConfig& gpu) {
  if (gpu.target == TargetKind::kCpu)
    return fmt::format(
        "Target: a CPU, architecture {}, {} core{}. The kernel is compiled with\n    {}\nIts main "
        "computation must execute "
        "{} instructions.\n",
        gpu.arch, gpu.cores, gpu.cores == 1 ? "" : "s", compile_command(gpu), gpu.instruction_family);
  return fmt::format(
      "Target: a GPU, architecture {}. The kernel is compiled with\n    {}\nIts main computation must "
      "execute {} "
      "instructions.\n",
      gpu.arch, compile_command(gpu), gpu.instruction_family);
}

Result<Definition> definition_of(const FrozenProblem& problem) {
  return parse_definition(problem.definition, "definition " + problem.name);
}

std::string failure_text(const std::string& task, const std::string& source, const std::string& feedback) {
  return fmt::format("{}\n## A kernel that failed\n\n{}\n## What its evaluation said\n\n{}\n", task,
                     fenced("cpp", source), feedback);
}

std::string rewrite_text(const std::string& refused, const std::string& rule) {
  if (refused.empty()) return "";
  return fmt::format(
      "\n## An earlier rationale, refused\n\nIt broke the rule {}. Write it anew so that it keeps every rule "
      "above; keep what "
      "is right in it.\n\n{}\n",
      rule, fenced("text", refused));
}

}  // namespace

std::string system_message(const FrozenPack& pack, const GpuConfig& gpu) {
  std::string text = pack.text;
  while (text.ends_with('\n')) text.pop_back();
  if (!text.empty()) text += "\n\n";
  return text + target_text(gpu);
}

Result<std::string> entry_point_declaration(const FrozenProblem& problem) {
  FIXIT_ASSIGN_OR_RETURN(const Definition definition, definition_of(problem));
  return c_declaration(definition);
}

Result<std::string> task_message(const FrozenProblem& problem, const GpuConfig& gpu, double target_speedup) {
  FIXIT_ASSIGN_OR_RETURN(const Definition definition, definition_of(problem));
  FIXIT_ASSIGN_OR_RETURN(const std::string json,
                         definition_text(problem.definition, "definition " + problem.name));
  FIXIT_ASSIGN_OR_RETURN(std::string declaration, c_declaration(definition));
  if (gpu.target == TargetKind::kCuda) {  // the stream comes last on a GPU
    const size_t end = declaration.rfind(')');
    declaration.insert(end, declaration[end - 1] == '(' ? "cudaStream_t stream" : ", cudaStream_t stream");
  }
  std::vector<Workload> workloads;
  for (const FrozenWorkload& frozen : problem.workloads) {
    FIXIT_ASSIGN_OR_RETURN(Workload workload, parse_workload(frozen.json, "workload " + frozen.uuid));
    workloads.push_back(std::move(workload));
  }
  return fmt::format(
      "# Task\n\nWrite a kernel for the operation defined here. The reference is Python and says what to "
      "compute, not how.\n\n"
      "{}\n## Workloads\n\nIt is checked and timed with these sizes; it must be correct with each of "
      "them:\n\n{}\n"
      "## Entry point\n\nDefine exactly this function:\n\n{}\n{}\n## Goal\n\n"
      "- An output element matches where |got - expected| <= {:g} + {:g} * |expected|; every element must "
      "match, on every "
      "call, each with other input values.\n"
      "- Target: {:.3f} times as fast as the reference implementation, on the workload where it is slowest "
      "against it.\n\n"
      "## Answer\n\nEnd your answer with the whole kernel, one self-contained source file, in one fenced "
      "code block tagged "
      "cpp:\n\n{}",
      fenced("json", json), workloads_text(definition, workloads), fenced("cpp", declaration),
      arguments_text(definition), gpu.tolerance, gpu.tolerance, target_speedup,
      "```cpp\n// the whole kernel\n```\n");
}

std::string repair_message(const std::string& task, const std::string& failed_source,
                           const std::string& failed_feedback) {
  return failure_text(task, failed_source, failed_feedback) +
         "\n## What to do\n\nFind the cause of the failure and mend this kernel with as few changes as will "
         "make it correct; "
         "keep its design. End your answer with the whole kernel in one fenced code block tagged cpp.\n";
}

std::string rationale_message(const std::string& task, const std::string& failed_source,
                              const std::string& failed_feedback, const std::string& repaired_source,
                              const RationaleStage& limits, const std::string& rewrite_of,
                              const std::string& rule) {
  std::string text = failure_text(task, failed_source, failed_feedback);
  text += fmt::format("\n## A kernel that was made from it and passed\n\n{}", fenced("cpp", repaired_source));
  text += fmt::format(
      "\n## What to do\n\nWrite down the reasoning of the engineer who had only the task, the failed kernel "
      "and what its "
      "evaluation said, and arrived at these changes: from the symptom to the cause in the code, to the plan "
      "of the mend.\n\n"
      "- First person, present tense, in English: I look, I see, I conclude.\n"
      "- Never mention or hint that a mended kernel, a solution, a teacher or an answer is known; everything "
      "follows from the "
      "failure.\n"
      "- Name lines, indices and values. Short quotations of code are fine, a whole kernel is not.\n"
      "- No <think> tags. Between {} and {} characters.\n",
      limits.min_chars, limits.max_chars);
  if (!limits.forbidden.empty())
    text += fmt::format("- None of these phrases: \"{}\".\n", fmt::join(limits.forbidden, "\", \""));
  text += rewrite_text(rewrite_of, rule);
  return text + "\nPut it between <rationale> and </rationale>.\n";
}

}  // namespace fixit
