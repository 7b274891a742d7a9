// Configuration files: every fault is found, said with file:line and key, and never echoes a secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/base/file.h"
#include "core/config/config_files.h"
#include "core/record/turn_status.h"
#include "tests/support/mutation.h"
#include "tests/support/temporary_folder.h"

namespace fixit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path kSource = FIXIT_SOURCE_DIR;

const std::string kSweep = R"(name: h100-attention
trace_sets: [configs/traces/ptxbench]
problems: [gemm_n7168_k5120, "mha_*_d128*", {name: x, workload: 94920358}]
models: [qwen3.6-27b, claude-opus-4.8]
gpus: [h100]
packs:
  - {name: no-hint, use: [hopper-base]}
  - {name: gemm-specialized, use: [hopper-base, hopper-gemm], problems: ["gemm_*"]}
  - plain
samples: 4
turns: 8
target_speedup: 1.2
priority: 5
budget: {tokens: 50000000, usd: 200}
fixit: {recipe: s5}
)";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class Config : public ::testing::Test {
 protected:
  std::string sweep_error(const std::string& text) {
    const auto file = folder_ / "sweep.yaml";
    std::filesystem::remove(file);  // a file that is cut to nothing and closed is flushed, a new one is not
    std::ofstream(file, std::ios::binary) << text;
    const auto sweep = load_sweep(file);
    return sweep.ok() ? "accepted" : sweep.status().message();
  }
  std::string sweep_error(std::string_view from, std::string_view to) {
    return sweep_error(replaced(kSweep, from, to));
  }
  std::string model_error(const std::string& text) {
    const auto model = load_model(folder_.write("m.yaml", text));
    return model.ok() ? "accepted" : model.status().message();
  }
  testing::TemporaryFolder folder_;
};

TEST_F(Config, ReadsAWholeSweep) {
  KeyLines lines;
  const auto sweep = load_sweep(folder_.write("sweep.yaml", kSweep), &lines);
  ASSERT_TRUE(sweep.ok()) << sweep.status().message();
  EXPECT_EQ(sweep->name, "h100-attention");
  EXPECT_EQ(sweep->problems[1].pattern, "mha_*_d128*");
  EXPECT_EQ(sweep->problems[2].workload, "94920358");
  EXPECT_THAT(sweep->packs[1].use, ElementsAre("hopper-base", "hopper-gemm"));
  EXPECT_THAT(sweep->packs[2].use, ElementsAre("plain"));
  EXPECT_EQ(sweep->samples, 4);
  EXPECT_EQ(sweep->budget.tokens, 50000000);
  EXPECT_EQ(sweep->recipe, "s5");
  EXPECT_EQ(lines["packs[1].use[1]"], 8);
  EXPECT_EQ(lines["problems[0]"], 3);
  EXPECT_EQ(lines["fixit.recipe"], 15);
}

TEST_F(Config, LineEndingsAndByteOrderMarksDoNotMatter) {
  std::string crlf = "\xef\xbb\xbf";
  for (const char c : kSweep) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(sweep_error(crlf), "accepted");
  EXPECT_THAT(sweep_error(replaced(crlf, "samples: 4", "samples: 0")), HasSubstr("sweep.yaml:10: samples"));
}

TEST_F(Config, UnknownKeysComeWithTheNearestKnownOne) {
  EXPECT_THAT(sweep_error("samples:", "sampels:"),
              HasSubstr("sweep.yaml:10: `sampels`: unknown key; did you mean `samples`?"));
  EXPECT_THAT(sweep_error("usd:", "usd_limit:"), HasSubstr("sweep.yaml:14: budget.`usd_limit`: unknown key"));
  EXPECT_THAT(sweep_error("recipe:", "recip:"),
              AllOf(HasSubstr("did you mean `recipe`?"), HasSubstr("fixit.recipe: is missing")));
}

TEST_F(Config, DuplicateKeysAreFaultsAtBothLevels) {
  EXPECT_THAT(sweep_error("turns: 8", "turns: 8\nturns: 9"),
              HasSubstr("sweep.yaml:12: `turns`: appears twice, first at line 11"));
  EXPECT_THAT(sweep_error("usd: 200", "usd: 200, usd: 1"), HasSubstr("appears twice"));
}

TEST_F(Config, ValuesOutOfRangeOrOfTheWrongKindAreFaults) {
  for (const std::string value :
       {"0", "10001", "-1", "1.5", "four", "\"4\"", "[4]", "{a: 1}", "1e3", "99999999999999999999"})
    EXPECT_THAT(sweep_error("samples: 4", "samples: " + value), HasSubstr("sweep.yaml:10: samples: is "))
        << value;
  for (const std::string value : {"0", "-1", ".nan", ".inf", "-.inf", "fast", "1e9"})
    EXPECT_THAT(sweep_error("target_speedup: 1.2", "target_speedup: " + value),
                HasSubstr("sweep.yaml:12: target_speedup"))
        << value;
  EXPECT_THAT(sweep_error("samples: 4", "samples:"), HasSubstr("samples: has no value"));
  EXPECT_THAT(sweep_error("tokens: 50000000", "tokens: -5"), HasSubstr("budget.tokens"));
  EXPECT_THAT(sweep_error("priority: 5", "priority: 10"), HasSubstr("a whole number from 1 to 9"));
  EXPECT_THAT(sweep_error("gpus: [h100]\n", ""), HasSubstr("gpus: is missing"));
  EXPECT_THAT(sweep_error("gpus: [h100]", "gpus: []"), HasSubstr("gpus: must name at least one"));
  EXPECT_THAT(sweep_error("gpus: [h100]", "gpus: [h100, h100]"), HasSubstr("gpus[1]: is named twice"));
  EXPECT_THAT(sweep_error("- plain", "- no-hint"), HasSubstr("packs[2]: has the name of an earlier entry"));
}

TEST_F(Config, AllFaultsOfAFileAreReportedTogether) {
  const std::string error =
      sweep_error(replaced(replaced(kSweep, "samples: 4", "samples: 0"), "turns: 8", "turns: 65"));
  EXPECT_THAT(error, AllOf(HasSubstr(":10: samples"), HasSubstr(":11: turns")));
}

TEST_F(Config, NumbersFollowYamlCpp) {
  const auto sweep = load_sweep(folder_.write("sweep.yaml", replaced(kSweep, "samples: 4", "samples: 0x10")));
  ASSERT_TRUE(sweep.ok());
  EXPECT_EQ(sweep->samples, 16);
}

TEST_F(Config, NamesCannotClimbOutOfTheirFolders) {
  for (const std::string name : {"../secret", "/etc/passwd", "a/b", "..", ".hidden", "a@b", "none"})
    EXPECT_THAT(sweep_error("gpus: [h100]", "gpus: [\"" + name + "\"]"), HasSubstr("sweep.yaml:5: gpus[0]"))
        << name;
  EXPECT_THAT(sweep_error("recipe: s5", "recipe: ../s5"), HasSubstr("fixit.recipe"));
  EXPECT_THAT(sweep_error("name: h100-attention", "name: ../x"), HasSubstr("sweep.yaml:1: name"));
  const ConfigSearch search(folder_.path() / "sweep.yaml");
  EXPECT_EQ(search.model("../models/x").status().code(), ErrorCode::kInvalid);
}

TEST_F(Config, OneBoundedDocumentPerFile) {
  EXPECT_THAT(sweep_error(kSweep + "---\nname: b\n"), HasSubstr("a second YAML document"));
  EXPECT_THAT(sweep_error(""), HasSubstr("no YAML document"));
  EXPECT_THAT(sweep_error("- a\n- b\n"), HasSubstr("sweep.yaml:1: is a list; accepted: a mapping"));
  EXPECT_THAT(sweep_error("a: [\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(sweep_error("name: \xff\xfe\n"), HasSubstr("not UTF-8"));
  EXPECT_THAT(sweep_error(std::string("name: a\n\x04 b\n")), HasSubstr("sweep.yaml:2: a control character"));
  EXPECT_THAT(sweep_error("a: &a [*a]\n"), HasSubstr("alias"));
  EXPECT_THAT(sweep_error("a: !!binary x\n"), HasSubstr("tags"));
  EXPECT_THAT(sweep_error(std::string(2u << 20, '#')), HasSubstr("more than"));
  EXPECT_THAT(sweep_error("a: " + std::string(5000, '[') + std::string(5000, ']')),
              HasSubstr("nested deeper"));
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const std::string below(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + std::string(1, c) + " [";
    for (int i = 0; i < 10; ++i) bomb += (i == 0 ? "*" : ", *") + below;
    bomb += "]\n";
  }
  EXPECT_THAT(sweep_error(bomb), HasSubstr("more than 100000 values"));
}

const std::string kModel = "protocol: openai\nbase_url: https://api.example.com/v1\nmodel: m\n";

TEST_F(Config, CredentialsNeverStandInAModelFile) {
  EXPECT_EQ(model_error(kModel + "api_key_env: OPENAI_API_KEY\n"), "accepted");
  for (const std::string key :
       {"sk-proj-abcdef0123456789", "hf_AbCdEfGh", "AIzaSyA0123456789", "AKIA0123456789ABCDEF"}) {
    EXPECT_THAT(model_error(kModel + "api_key_env: " + key + "\n"),
                AllOf(HasSubstr("m.yaml:4: api_key_env"), Not(HasSubstr(key))));
    EXPECT_THAT(model_error(kModel + "api_key: " + key + "\n"),
                AllOf(HasSubstr("api_key_env"), Not(HasSubstr(key))));
  }
  for (const std::string url :
       {"https://user:hunter2@api.example.com/v1", "https://hunter2@api.example.com/v1",
        "https://api.example.com/v1?key=hunter2", "ftp://hunter2", "hunter2 hunter2"})
    EXPECT_THAT(model_error(replaced(kModel, "https://api.example.com/v1", url)),
                AllOf(HasSubstr("m.yaml:2: base_url"), Not(HasSubstr("hunter2"))))
        << url;
}

TEST_F(Config, PlainHttpIsForThisMachineOnly) {
  const auto with = [&](const std::string& url) {
    return model_error(replaced(kModel, "https://api.example.com/v1", url));
  };
  EXPECT_EQ(with("http://127.0.0.1:8000/v1"), "accepted");
  EXPECT_EQ(with("http://localhost:8000/v1/"), "accepted");
  EXPECT_EQ(with("http://[::1]:8000/v1"), "accepted");
  EXPECT_THAT(with("http://10.0.0.7:8000/v1"), HasSubstr("allow_http"));
  EXPECT_THAT(with("http://127.0.0.1.example.com/v1"), HasSubstr("allow_http"));
  EXPECT_THAT(with("http://localhost.example.com/v1"), HasSubstr("allow_http"));
  EXPECT_EQ(with("http://10.0.0.7:8000/v1\nallow_http: true"), "accepted");
}

TEST_F(Config, SamplingKeepsTheKindOfItsValues) {
  const auto model = load_model(folder_.write(
      "m.yaml",
      kModel + "sampling: {temperature: 0.6, top_k: 20, stop: \"5\", seed: true, extra: {a: [1, x]}}\n"));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->sampling_json,
            R"({"temperature":0.6,"top_k":20,"stop":"5","seed":true,"extra":{"a":[1,"x"]}})");
  EXPECT_THAT(model_error(kModel + "sampling: {messages: []}\n"),
              HasSubstr("sampling.messages: is set by Fixit"));
}

TEST_F(Config, KeysOfAnotherProtocolAreUnknown) {
  EXPECT_THAT(model_error("protocol: replay\nreplies: r\nbase_url: https://x/v1\n"),
              HasSubstr("unknown key"));
  EXPECT_THAT(model_error("protocol: opnai\n"),
              HasSubstr("accepted: replay, openai; did you mean `openai`?"));
}

TEST_F(Config, GpuFlagsCannotReachOut) {
  for (const std::string flag :
       {"-fplugin=x.so", "-Wl,-rpath,/x", "-include/etc/passwd", "-lopenblas", "-march=native", "-f/x"})
    EXPECT_THAT(load_gpu(folder_.write("g.yaml", "target: cpu\ncompile_flags: [\"" + flag + "\"]\n"))
                    .status()
                    .message(),
                HasSubstr("g.yaml:2: compile_flags"))
        << flag;
  EXPECT_TRUE(
      load_gpu(
          folder_.write("g.yaml", "target: cpu\ncompile_flags: [-ffast-math, -mprefer-vector-width=512]\n"))
          .ok());
}

TEST_F(Config, RecipesTakeExactlyTheMendableStatuses) {
  const auto error = [&](std::string_view status) {
    const auto recipe =
        load_recipe(folder_.write("r.yaml", "failures: {statuses: [" + std::string(status) +
                                                "]}\nrepair: {model: t}\nrationale: {model: t}\n"));
    return recipe.ok() ? "accepted" : recipe.status().message();
  };
  for (const auto& [status, name] : EnumNames<TurnStatus>::values) {
    if (is_failure(status))
      EXPECT_EQ(error(name), "accepted") << name;
    else
      EXPECT_THAT(error(name), HasSubstr("r.yaml:1: failures.statuses")) << name;
  }
  EXPECT_THAT(error("COMPILE_EROR"), HasSubstr("did you mean `COMPILE_ERROR`?"));
}

TEST_F(Config, SearchFindsFilesBesideTheSweepAndNamesWhatExists) {
  const ConfigSearch search(kSource / "configs/sweeps/quickstart.yaml");
  EXPECT_TRUE(search.gpu("cpu").ok());
  EXPECT_TRUE(search.model("quickstart-replay").ok());
  EXPECT_TRUE(search.recipe("quickstart").ok());
  EXPECT_TRUE(search.trace_set("configs/traces/cpu").ok());
  EXPECT_TRUE(search.trace_set("../traces/cpu").ok());
  const auto missing = search.model("quickstart-repaly");
  EXPECT_EQ(missing.status().code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.status().message(),
              AllOf(HasSubstr("example-openai"), HasSubstr("did you mean `quickstart-replay`?")));
}

TEST_F(Config, ShippedFilesLoad) {
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs/models"))
    EXPECT_TRUE(load_model(entry.path()).ok()) << load_model(entry.path()).status().message();
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs/sweeps"))
    EXPECT_TRUE(load_sweep(entry.path()).ok()) << load_sweep(entry.path()).status().message();
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "recipes"))
    EXPECT_TRUE(load_recipe(entry.path()).ok()) << load_recipe(entry.path()).status().message();
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "configs/packs"))
    EXPECT_TRUE(load_pack(entry.path()).ok()) << load_pack(entry.path()).status().message();
  const auto gpu = load_gpu(kSource / "configs/gpus/cpu.yaml");
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  EXPECT_EQ(encode(*gpu), encode([] {
              GpuConfig defaults;
              defaults.name = "cpu";
              return defaults;
            }()))
      << "cpu.yaml says that its values are the defaults";
}

TEST_F(Config, PacksAreFragmentsInOrderWithTheirHeaders) {
  folder_.write("p/pack.yaml", "fragments: [a.md, sub/wrap.h]\n");
  folder_.write("p/a.md", "First.\r\n\r\n\r\n");
  folder_.write("p/sub/wrap.h", "#pragma once");
  const auto pack = load_pack(folder_.path() / "p");
  ASSERT_TRUE(pack.ok()) << pack.status().message();
  EXPECT_TRUE(pack->text.starts_with("First.\n\nHeader `wrap.h`"));
  EXPECT_EQ(pack->headers.at("wrap.h"), "#pragma once\n");
  folder_.write("p/pack.yaml", "fragments:\n  - a.md\n  - ../x.md\n  - missing.md\n");
  EXPECT_THAT(load_pack(folder_.path() / "p").status().message(),
              AllOf(HasSubstr("pack.yaml:3: fragments[1]"), HasSubstr("pack.yaml:4: fragments[2]")));
}

TEST_F(Config, SiteTakesFileThenEnvironment) {
  const auto file =
      folder_.write("fixit.yaml", "redis: redis://me@10.0.0.1:6379/2\ndata: here\nlease_s: 5\n");
  ::unsetenv("FIXIT_REDIS");
  ::unsetenv("FIXIT_DATA");
  const auto site = load_site_config(file);
  ASSERT_TRUE(site.ok()) << site.status().message();
  EXPECT_EQ(site->redis, "redis://me@10.0.0.1:6379/2");
  EXPECT_EQ(site->data, folder_.path() / "here");
  EXPECT_EQ(site->lease_s, 5);
  ::setenv("FIXIT_REDIS", "embedded", 1);
  ::setenv("FIXIT_DATA", "/elsewhere", 1);
  EXPECT_EQ(load_site_config(file)->redis, "embedded");
  EXPECT_EQ(load_site_config(file)->data, "/elsewhere");
  ::setenv("FIXIT_REDIS", "redis://me:hunter2@h:1", 1);
  EXPECT_THAT(load_site_config(file).status().message(),
              AllOf(HasSubstr("FIXIT_REDIS"), Not(HasSubstr("hunter2"))));
  ::unsetenv("FIXIT_REDIS");
  ::unsetenv("FIXIT_DATA");
  folder_.write("fixit.yaml", "listen: tcp://0.0.0.0:5555\n");
  EXPECT_THAT(load_site_config(file).status().message(), HasSubstr("beyond this machine"));
  EXPECT_EQ(load_site_config(folder_.path() / "none.yaml").status().code(), ErrorCode::kNotFound);
}

TEST_F(Config, PatternsMatchWholeNames) {
  EXPECT_TRUE(name_matches("mha_*_d128*", "mha_bwd_d128_causal"));
  EXPECT_TRUE(name_matches("*", ""));
  EXPECT_TRUE(name_matches("a?c", "abc"));
  EXPECT_FALSE(name_matches("a?c", "ac"));
  EXPECT_FALSE(name_matches("gemm", "gemm_n1"));
  EXPECT_FALSE(name_matches("*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST_F(Config, DamagedFilesGiveErrorsAndNothingWorse) {
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string error = sweep_error(mutated(kSweep, random));
    EXPECT_FALSE(error.empty());
    refused += error == "accepted" ? 0 : 1;
  }
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, 2000);
}

}  // namespace
}  // namespace fixit
