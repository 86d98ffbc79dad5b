#include "backend/http/server_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(ServerUrl, HasItsParts) {
  const auto plain = parse_server_url("http://127.0.0.1:8080");
  ASSERT_TRUE(plain);
  EXPECT_EQ(*plain, (ServerUrl{false, "127.0.0.1", "8080", ""}));
  const auto whole = parse_server_url("https://models.example:8443/api/");
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, (ServerUrl{true, "models.example", "8443", "/api"}));
  const auto six = parse_server_url("http://[::1]:90");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->host_header(), "[::1]:90");
}

TEST(ServerUrl, TheVersionOfOpenaisPathsIsNoPartOfTheAddress) {
  EXPECT_EQ(parse_server_url("http://host:8000/v1")->text(), "http://host:8000");
  EXPECT_EQ(parse_server_url("https://host/under/v1/")->text(), "https://host/under");
  EXPECT_EQ(parse_server_url("http://host/xv1")->text(), "http://host/xv1");
}

TEST(ServerUrl, UsualPortsAreNotShown) {
  EXPECT_EQ(parse_server_url("http://host:80/")->text(), "http://host");
  EXPECT_EQ(parse_server_url("https://host")->port, "443");
  EXPECT_EQ(parse_server_url("https://host:80")->text(), "https://host:80");
}

TEST(ServerUrl, OthersAreRefusedByName) {
  for (const char* const text :
       {"", "host:80", "ftp://host", "http://", "http://:80", "http://host:0", "http://host:70000",
        "http://host:8o", "http://user:secret@host", "http://host/a?b=c", "http://host/a#b",
        "http://host name", "http://[::1", "http://[::1]x", "http://ho\"st",
        "http://host\r\nX: y"}) {
    const auto url = parse_server_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_THAT(url.error().message, testing::HasSubstr("expected http://HOST[:PORT]"));
  }
}

}  // namespace
}  // namespace assay
