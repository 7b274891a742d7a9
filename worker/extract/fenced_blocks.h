// Fenced code blocks of a reply, with thinking left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fixit {

struct FencedBlock {
  std::string tag;      // as written: up to white space or the first of {,:;
  std::string content;  // lines end in LF; the fence's own indentation is taken off
  bool closed = false;  // an unclosed block can only be the last one
};

// Blocks in order, any tag. Fences are as in CommonMark: three or more backticks or tildes, indented up to
// three columns, closed by a run of the same sign that is at least as long and has nothing after it. Text
// between <think> (or <thinking>) and its end tag is skipped, also where the end is missing; an end tag
// without a beginning ends thinking that began before the reply, so blocks before it do not count.
std::vector<FencedBlock> fenced_blocks(std::string_view reply);

}  // namespace fixit
