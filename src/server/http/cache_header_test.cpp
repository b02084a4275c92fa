#include "server/http/cache_header.h"

#include <gtest/gtest.h>

namespace octavo::server {
namespace {

TEST(CacheHeader, HoldsCountsPositionsAndReasons) {
  EXPECT_EQ(cache_header({.prompt = 10, .hit = 10}), "hit=10/10");
  EXPECT_EQ(cache_header({.prompt = 1300, .hit = 96, .misses = {CacheMiss::kDiffers}, .at = 97}),
            "hit=96/1300; miss=differs; at=97");
  EXPECT_EQ(cache_header({.prompt = 1300,
                          .hit = 96,
                          .disk = 32,
                          .misses = {CacheMiss::kEvicted, CacheMiss::kNew},
                          .lost = 64,
                          .at = 160}),
            "hit=96/1300; disk=32; miss=evicted,new; lost=64; at=160");
}

}  // namespace
}  // namespace octavo::server
