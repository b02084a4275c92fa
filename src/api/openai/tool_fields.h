// tool_fields.h - the fields of a chat that are about tools.
#pragma once

#include <string>
#include <vector>

#include "api/fields/body_fields.h"
#include "text/dialects/dialect.h"

namespace octavo::api {

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

struct ToolCallFields {
  Json tools = nullptr;              // the functions, as they were sent; null: none
  std::vector<Tool> functions = {};  // the same, read
  ToolChoice choice = ToolChoice::kAuto;
  std::string named = {};  // with kNamed
  bool parallel = true;
  IgnoredFields ignored = {};  // kinds of tool that nobody here can call

  // Whether the model is to know of them.
  bool active() const { return !functions.empty() && choice != ToolChoice::kNone; }
  bool forced() const { return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed; }
};

const FieldTable<ToolCallFields>& tool_fields();

// What must fit together. Throws RequestError(400).
void check_tools(const ToolCallFields& fields);

}  // namespace octavo::api
