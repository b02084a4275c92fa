// tool_fields.h - the tool fields of a chat.
#pragma once

#include <string>
#include <vector>

#include "api/fields/body_fields.h"
#include "text/dialects/dialect.h"

namespace octavo::api {

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

struct ToolCallFields {
  Json tools = nullptr;              // the functions as sent; null: none
  std::vector<Tool> functions = {};  // the same, parsed
  ToolChoice choice = ToolChoice::kAuto;
  std::string named = {};  // with kNamed
  bool parallel = true;
  IgnoredFields ignored = {};  // unsupported kinds of tool

  // Whether tools are offered to the model.
  bool active() const { return !functions.empty() && choice != ToolChoice::kNone; }
  bool forced() const { return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed; }
};

const FieldTable<ToolCallFields>& tool_fields();

// Checks tool_choice against tools. Throws RequestError(400).
void check_tools(const ToolCallFields& fields);

}  // namespace octavo::api
