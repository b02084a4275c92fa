#include "server/persistent_state.h"

#include <gtest/gtest.h>

#include <future>

#include "state/response_table.h"
#include "state/testing/state_folder.h"

namespace octavo::server {
namespace {

TEST(PersistentState, ResponsesThatWaitForASlowDiskHaveALimit) {
  const state::StateFolder folder;
  const Tenants tenants({}, false);
  {
    PersistentState state({.folder = folder.path()}, tenants);
    std::promise<void> disk_goes_on;
    state.post(
        [goes_on = disk_goes_on.get_future().share()](const state::Database&) { goes_on.wait(); });
    for (uint64_t serial = 1; serial <= 20; ++serial) {
      state.added("", "resp_" + std::to_string(serial),
                  std::make_shared<const api::StoredResponse>(
                      api::StoredResponse{.object = std::string(4u << 20, 'x'), .serial = serial}));
    }
    disk_goes_on.set_value();
    state.stop();
  }
  const state::Database database(folder.path());
  EXPECT_EQ(state::ResponseTable(database).all().size(), 16u);
}

TEST(PersistentState, WrittenResponsesMakeRoom) {
  const state::StateFolder folder;
  const Tenants tenants({}, false);
  PersistentState state({.folder = folder.path()}, tenants);
  for (uint64_t serial = 1; serial <= 40; ++serial) {
    state.added("", "resp_" + std::to_string(serial),
                std::make_shared<const api::StoredResponse>(
                    api::StoredResponse{.object = std::string(4u << 20, 'x'), .serial = serial}));
    std::promise<void> written;
    state.post([&written](const state::Database&) { written.set_value(); });
    written.get_future().wait();
  }
  std::promise<size_t> count;
  state.post([&count](const state::Database& database) {
    count.set_value(state::ResponseTable(database).all().size());
  });
  EXPECT_EQ(count.get_future().get(), 40u);
}

}  // namespace
}  // namespace octavo::server
