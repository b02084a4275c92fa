#include "state/response_table.h"

namespace octavo::state {

void ResponseTable::put(const ResponseRecord& response) {
  connection_.prepare("INSERT OR REPLACE INTO responses VALUES(?, ?, ?, ?, ?, ?, ?)")
      .bind(response.serial)
      .bind_blob(response.owner)
      .bind(response.id)
      .bind(response.previous_id)
      .bind(response.previous_serial)
      .bind_blob(response.object)
      .bind_blob(response.input)
      .run();
}

void ResponseTable::erase(int64_t serial) {
  connection_.prepare("DELETE FROM responses WHERE serial = ?").bind(serial).run();
}

std::vector<ResponseRecord> ResponseTable::all() const {
  Statement rows = connection_.prepare(
      "SELECT serial, owner, id, previous_id, previous_serial, object, input FROM responses"
      " ORDER BY serial");
  std::vector<ResponseRecord> found;
  while (rows.step())
    found.push_back({.serial = rows.integer(0),
                     .owner = rows.text(1),
                     .id = rows.text(2),
                     .previous_id = rows.text(3),
                     .previous_serial = rows.integer(4),
                     .object = rows.text(5),
                     .input = rows.text(6)});
  return found;
}

}  // namespace octavo::state
