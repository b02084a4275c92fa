#include "state/response_model_table.h"

namespace octavo::state {

void ResponseModelTable::put(const std::string& owner, const std::string& id,
                             const std::string& model) {
  Transaction transaction(connection_);
  connection_.prepare("INSERT OR REPLACE INTO response_models(owner, id, model) VALUES(?, ?, ?)")
      .bind_blob(owner)
      .bind(id)
      .bind(model)
      .run();
  connection_
      .prepare(
          "DELETE FROM response_models WHERE key <= (SELECT max(key) FROM response_models) - ?")
      .bind(most_)
      .run();
  transaction.commit();
}

std::optional<std::string> ResponseModelTable::find(const std::string& owner,
                                                    const std::string& id) const {
  Statement row =
      connection_.prepare("SELECT model FROM response_models WHERE owner = ? AND id = ?");
  row.bind_blob(owner).bind(id);
  if (!row.step()) return std::nullopt;
  return row.text(0);
}

}  // namespace octavo::state
