#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_files.h"
#include "core/config/file_names.h"
#include "core/config/yaml_reader.h"

namespace fixit {
namespace {

bool is_arch(const std::string& text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

// Flags that change code generation only: none may name files, plugins, libraries or another program.
bool is_code_flag(const std::string& flag) {
  const bool family = flag.starts_with("-f") || flag.starts_with("-m") || flag.starts_with("-O") ||
                      flag.starts_with("-D") || flag.starts_with("-W");
  const bool reaches_out = flag.starts_with("-fplugin") || flag.starts_with("-Wl,") ||
                           flag.starts_with("-Wa,") || flag.starts_with("-Wp,") ||
                           flag.starts_with("-march=") || flag.starts_with("-fprofile") ||
                           flag.find('/') != std::string::npos || flag.find(' ') != std::string::npos;
  return family && !reaches_out;
}

void read_measuring(YamlMap& map, GpuConfig& gpu) {
  map.integer("cores", gpu.cores, 1, 1024);
  map.integer("warmup_calls", gpu.warmup_calls, 0, 10000);
  map.integer("timed_calls", gpu.timed_calls, 1, 100000);
  map.number("tolerance", gpu.tolerance, {.least = 0, .most = 1, .above = true});
  map.number("call_deadline_min_s", gpu.call_deadline_min_s, {.least = 0, .most = 3600, .above = true});
  map.number("call_deadline_factor", gpu.call_deadline_factor, {.least = 1, .most = 1e6});
  map.number("evaluation_deadline_s", gpu.evaluation_deadline_s, {.least = 0, .most = 86400, .above = true});
  map.number("compile_deadline_s", gpu.compile_deadline_s, {.least = 0, .most = 3600, .above = true});
  map.integer("memory_mib", gpu.memory_mib, 16, 16 << 20);
  map.choice("minimum_sandbox", gpu.minimum_sandbox, {"seccomp", "namespaces+seccomp"});
}

}  // namespace

Result<GpuConfig> load_gpu(const std::filesystem::path& file) {
  FIXIT_ASSIGN_OR_RETURN(const auto document, load_yaml(file));
  YamlFaults faults(file.string());
  YamlMap map(faults, *document, "");
  GpuConfig gpu;
  gpu.name = file.stem().string();
  if (!is_plain_name(gpu.name))
    map.fault("", fmt::format("the file's name is not a GPU's; accepted: {}", kPlainNameRule));
  map.require("target", "cpu or cuda");
  if (map.name("target", gpu.target) && gpu.target == TargetKind::kCuda)
    map.fault("target", "`cuda` is not part of this version; accepted: cpu");
  if (map.text("arch", gpu.arch) && !is_arch(gpu.arch))
    map.fault("arch", "is not an architecture; accepted: a value of g++'s -march, as x86-64-v3");
  if (map.texts("compile_flags", gpu.compile_flags))
    for (const auto& flag : gpu.compile_flags)
      if (!is_code_flag(flag))
        map.fault("compile_flags",
                  fmt::format("`{}` is refused; accepted: -f..., -m..., -O..., -D... and -W... that "
                              "name no file, plugin or other tool (-march is the key `arch`)",
                              flag.substr(0, 60)));
  map.choice("instruction_family", gpu.instruction_family, {"fma"});
  read_measuring(map, gpu);
  map.finish();
  FIXIT_RETURN_IF_ERROR(faults.status());
  return gpu;
}

}  // namespace fixit
