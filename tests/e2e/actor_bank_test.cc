// examples/bank.cc, killed again and again: no money is lost, and none is made.
#include "actor_fixture.h"

namespace perdure::e2e {
namespace {

constexpr std::int64_t kAccounts = 5, kEach = 100;

class ActorBank : public ActorProcesses {
 protected:
  struct Books {
    std::int64_t accounts = 0;   ///< In all accounts, those that have not been opened yet included.
    std::int64_t in_flight = 0;  ///< Deposits in mailboxes.
  };
  /// At one moment.
  Books books() {
    return must(store_.read([&](Reader& reader) {
      Books books{.accounts = kAccounts * kEach};
      for (const std::string& id : actors_.list(reader, "account")) {
        auto info = actors_.actor("account", id).inspect(reader);
        if (info && info->state) books.accounts += *info->state->find("balance")->as_integer() - kEach;
        SystemAccess access(reader);
        Bytes mailbox = actor::mailbox_key(actor::prefix_of({"default", "account", id}));
        for (const Row& row : reader.get_range(tuple::extensions(mailbox))) {
          Value message = must(Value::decode(must(actor::decode_item(mailbox, row)).message.body));
          if (const Value* deposit = message.find("Deposit")) books.in_flight += *deposit->find("amount")->as_integer();
        }
      }
      return books;
    }));
  }
};

/// DGEN-1, DGEN-16, DGEN-20, DGEN-U16: a transfer is one transaction, whatever it is interrupted by.
TEST_F(ActorBank, MoneyIsNeitherLostNorMadeWhenTheBankIsKilled) {
  int in_flight = 0;
  for (int i = 0; i < 40; ++i) {
    Child bank({PERDURE_E2E_BANK, url_});
    bank.gather(Milliseconds(20 + i * 37 % 200));
    bank.kill();
    Books now = books();
    ASSERT_EQ(now.accounts + now.in_flight, kAccounts * kEach) << "after kill " << i;
    if (now.in_flight > 0) ++in_flight;
  }
  std::printf("%d of 40 kills left money in mailboxes\n", in_flight);
  Child bank({PERDURE_E2E_BANK, url_});
  EXPECT_EQ(bank.answer(), "5 accounts with 500 in all");
  EXPECT_EQ(bank.wait(), 0);
  Books now = books();
  EXPECT_EQ(now.accounts, kAccounts * kEach);
  EXPECT_EQ(now.in_flight, 0);
}

}  // namespace
}  // namespace perdure::e2e
