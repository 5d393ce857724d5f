// Tests login and TLS against a real broker: what works, and that each setting that does not work
// gives a clear error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/kafka/cluster.h"
#include "common/thread/clock.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class KafkaSecurityTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string dir = testing::TempDir();
    // keytool comes with Java. The certificate names the broker's address, which clients check.
    const std::string make = absl::StrCat(
        "cd ", dir, " && rm -f keys.p12 ca.pem && keytool -genkeypair -alias broker -keyalg RSA ",
        "-dname CN=broker -ext SAN=IP:127.0.0.1 -validity 30 -storetype PKCS12 -keystore keys.p12 ",
        "-storepass keystore-secret && keytool -exportcert -rfc -alias broker -keystore keys.p12 ",
        "-storepass keystore-secret -file ca.pem");
    if (std::system(absl::StrCat("(", make, ") >/dev/null 2>&1").c_str()) != 0) {
      // Start skips the test, or fails it where a broker is required.
      CHECK(KafkaBroker::Start() == nullptr) << "Java is there, but its keytool fails";
      return;
    }
    const std::vector<int> ports = FreePorts(4);
    plain_ = absl::StrCat("127.0.0.1:", ports[0]);
    sasl_ = absl::StrCat("127.0.0.1:", ports[1]);
    tls_ = absl::StrCat("127.0.0.1:", ports[2]);
    const std::string controller = absl::StrCat("127.0.0.1:", ports[3]);
    broker_ =
        KafkaBroker::Start(
            {absl::StrCat("listeners=PLAINTEXT://", plain_, ",SASL_PLAINTEXT://", sasl_, ",SSL://",
                          tls_, ",CONTROLLER://", controller),
             absl::StrCat("advertised.listeners=PLAINTEXT://", plain_, ",SASL_PLAINTEXT://", sasl_,
                          ",SSL://", tls_),
             absl::StrCat("controller.quorum.voters=1@", controller),
             absl::StrCat("listener.security.protocol.map=PLAINTEXT:PLAINTEXT,",
                          "SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"),
             "sasl.enabled.mechanisms=PLAIN",
             absl::StrCat("listener.name.sasl_plaintext.plain.sasl.jaas.config=",
                          "org.apache.kafka.common.security.plain.PlainLoginModule required ",
                          "user_alice=\"alice-secret\";"),
             absl::StrCat("ssl.keystore.location=", dir, "/keys.p12"), "ssl.keystore.type=PKCS12",
             "ssl.keystore.password=keystore-secret", "ssl.key.password=keystore-secret"},
            plain_)
            .release();
  }
  static void TearDownTestSuite() { delete broker_; }
  void SetUp() override {
    if (broker_ == nullptr) GTEST_SKIP() << "no Kafka broker is installed";
  }

  using Settings = std::vector<std::pair<std::string, std::string>>;
  static absl::Status Connect(const std::string& address, const Settings& settings,
                              absl::Duration limit = KafkaCluster::kLimit) {
    KafkaConfig config;
    config.add_brokers(address);
    for (const auto& [name, value] : settings) {
      KafkaSetting* const setting = config.add_settings();
      setting->set_name(name);
      setting->set_value(value);
    }
    return KafkaCluster::Connect(config, limit).status();
  }
  static std::string Secret(const std::string& text) {
    const std::string path = testing::TempDir() + "/secret";
    std::ofstream(path) << text << "\n";
    return "file:" + path;
  }
  static Settings Sasl(const std::string& password) {
    return {{"security.protocol", "sasl_plaintext"},
            {"sasl.mechanism", "PLAIN"},
            {"sasl.username", "alice"},
            {"sasl.password", Secret(password)}};
  }

  static KafkaBroker* broker_;
  static std::string plain_;
  static std::string sasl_;
  static std::string tls_;
};

KafkaBroker* KafkaSecurityTest::broker_ = nullptr;
std::string KafkaSecurityTest::plain_;
std::string KafkaSecurityTest::sasl_;
std::string KafkaSecurityTest::tls_;

TEST_F(KafkaSecurityTest, ALoginWithThePasswordOfAFileWorks) {
  const absl::Status status = Connect(sasl_, Sasl("alice-secret"));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(KafkaSecurityTest, AWrongPasswordIsAnErrorAtOnceThatDoesNotRepeatIt) {
  const int64_t begin_ms = MonotonicMs();
  const absl::Status status = Connect(sasl_, Sasl("wrong-secret"));
  EXPECT_LT(MonotonicMs() - begin_ms, 10000);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("refused the login"), HasSubstr(sasl_), HasSubstr("sasl.*"),
                    Not(HasSubstr("wrong-secret"))));
}

TEST_F(KafkaSecurityTest, WithoutALoginTheErrorSpeaksOfTheProtocol) {
  const absl::Status status = Connect(sasl_, {}, absl::Seconds(3));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(sasl_), HasSubstr("security.protocol")));
}

TEST_F(KafkaSecurityTest, TlsWorksWithTheBrokersCertificate) {
  const absl::Status status = Connect(
      tls_, {{"security.protocol", "ssl"}, {"ssl.ca.location", testing::TempDir() + "/ca.pem"}});
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(KafkaSecurityTest, ACertificateThatNobodySignedIsAnErrorAtOnce) {
  const int64_t begin_ms = MonotonicMs();
  const absl::Status status = Connect(tls_, {{"security.protocol", "ssl"}});
  EXPECT_LT(MonotonicMs() - begin_ms, 10000);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("TLS with the Kafka broker"), HasSubstr(tls_),
                    HasSubstr("certificate verify failed"), HasSubstr("ssl.ca.location")));
}

TEST_F(KafkaSecurityTest, PlainTextToATlsPortIsAnErrorThatSpeaksOfTheProtocol) {
  const absl::Status status = Connect(tls_, {}, absl::Seconds(3));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(tls_), HasSubstr("security.protocol")));
}

TEST_F(KafkaSecurityTest, TlsToAPlainPortIsAnError) {
  const absl::Status status = Connect(plain_, {{"security.protocol", "ssl"}}, absl::Seconds(3));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(plain_), HasSubstr("security.protocol")));
}

}  // namespace
}  // namespace satrap
