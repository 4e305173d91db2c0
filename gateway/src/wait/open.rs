//! Open long polls and event streams (docs/reference/conventions.md#limits-on-open-waits).

use service::shares::{Held, Key, Shares};

use crate::admission::{account_key, crowded};
use crate::extract::caller::Caller;
use crate::problem::{Problem, Result};

/// Open waits and streams of one process, of one account and of one token.
const WAITS_MAX: u64 = 4096;
const WAITS_OF_ACCOUNT_MAX: u64 = 256;
const WAITS_OF_TOKEN_MAX: u64 = 64;

/// The open waits of this process.
pub struct Waits {
    accounts: Shares,
    tokens: Shares,
}

/// An open wait, closed on drop.
pub struct Wait {
    _account: Held,
    _token: Held,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            accounts: Shares::new("waits", WAITS_MAX, WAITS_OF_ACCOUNT_MAX),
            tokens: Shares::new("waits_of_a_token", WAITS_MAX, WAITS_OF_TOKEN_MAX),
        }
    }
}

impl Waits {
    /// Opens a wait, whose request is no longer one in progress; 429 when the token or the account has too many, 503 when all together
    /// have.
    pub fn open<G>(&self, caller: &Caller<G>) -> Result<Wait> {
        let wait = self.hold(&account_key(&caller.account), &Key::name(&caller.token.to_string()))?;
        caller.place.leave();
        Ok(wait)
    }

    fn hold(&self, account: &Key, token: &Key) -> Result<Wait> {
        let too_many = |share: &Shares, key: &Key, owner: &str| match share.blocker(key, 1) {
            Some(blocker) if blocker != *key => crowded(share, "total"),
            _ => {
                share.refuse("limit");
                Problem::RateLimited(format!("the {owner} has {} open waits and streams", share.per_key()), 1)
            }
        };
        Ok(Wait {
            _account: self.accounts.try_hold(account, 1).ok_or_else(|| too_many(&self.accounts, account, "account"))?,
            _token: self.tokens.try_hold(token, 1).ok_or_else(|| too_many(&self.tokens, token, "token"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(waits: &Waits, account: u64, token: u64) -> Result<Wait> {
        waits.hold(&Key::account(&account.to_string()), &Key::name(&token.to_string()))
    }

    #[test]
    fn a_token_an_account_and_a_gateway_have_their_limits() {
        let waits = Waits::default();
        let mut open: Vec<Wait> = (0..64).map(|_| of(&waits, 0, 0).expect("the token has 64")).collect();
        let refused = |outcome: Result<Wait>| matches!(outcome, Err(Problem::RateLimited(_, 1)));
        assert!(refused(of(&waits, 0, 0)));
        for token in 1..4 {
            open.extend((0..64).map(|_| of(&waits, 0, token).expect("the account has 256")));
        }
        assert!(refused(of(&waits, 0, 5)), "another token of the account");
        open.pop();
        open.push(of(&waits, 0, 5).expect("one was closed"));
        for account in 1..16 {
            open.extend((0..256).map(|wait| of(&waits, account, account * 10 + wait / 64).expect("4096 in all")));
        }
        assert_eq!((open.len(), waits.accounts.held()), (4096, 4096));
        assert!(matches!(of(&waits, 20, 20), Err(Problem::Unavailable(_, Some(1)))));
        drop(open);
        assert_eq!((waits.accounts.held(), waits.tokens.held()), (0, 0));
    }
}
