//! Budgets: what a token, an app or an account may spend within a period (docs/reference/authentication.md#budgets).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::graph::named;
use crate::known::Name;
use crate::limits::{BUDGET_MAX, BUDGETS_MAX};
use crate::{Timestamp, Violation, counted};

named! {
    /// What a budget counts.
    BudgetUnit {
        /// Credits that work reserves, less what it returns within the same window.
        Credits = "credits",
        /// Outputs of generation, edits, variations, videos, campaigns and Recipe runs, of saved connections too. They count when the work
        /// is accepted, and none returns.
        Outputs = "outputs",
    }
}

named! {
    /// How long a budget counts before it begins again.
    BudgetPeriod {
        /// A UTC day.
        Day = "day",
        /// A UTC month.
        Month = "month",
        /// Without end.
        Total = "total",
    }
}

named! {
    /// Whose budget it is.
    BudgetOwner {
        /// Of the token.
        Token = "token",
        /// Of the app.
        App = "app",
        /// Of the whole account.
        Account = "account",
    }
}

named! {
    /// Why a budget refuses a start.
    BudgetRefusal {
        /// The work needs more than is left.
        Exceeded = "exceeded",
    }
}

/// A budget, as it is set. A start that passes `max` is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// What it counts.
    pub unit: BudgetUnit,
    /// How long it counts.
    pub period: BudgetPeriod,
    /// The most that may be spent in the period.
    #[schema(minimum = 0, maximum = 9007199254740991i64)]
    pub max: i64,
}

/// A budget, and what is spent of it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// Whose budget it is.
    #[schema(value_type = BudgetOwner)]
    pub of: Name<BudgetOwner>,
    /// What it counts.
    #[schema(value_type = BudgetUnit)]
    pub unit: Name<BudgetUnit>,
    /// How long it counts.
    #[schema(value_type = BudgetPeriod)]
    pub period: Name<BudgetPeriod>,
    /// The most that may be spent in the period.
    #[schema(minimum = 0)]
    pub max: i64,
    /// What is spent in the present period, since the budget was set.
    #[schema(minimum = 0)]
    pub spent: i64,
    /// What may still be spent.
    #[schema(minimum = 0)]
    pub left: i64,
    /// When the next period begins; absent of a budget in total.
    pub resets_at: Option<Timestamp>,
    /// In a refusal: why.
    #[schema(value_type = Option<BudgetRefusal>)]
    pub reason: Option<Name<BudgetRefusal>>,
}

impl BudgetState {
    /// The budget in words: `5 outputs a day`.
    pub fn in_words(&self) -> String {
        let max = match &self.unit {
            Name::Known(BudgetUnit::Credits) => counted(self.max, "credit"),
            Name::Known(BudgetUnit::Outputs) => counted(self.max, "output"),
            Name::Later(unit) => format!("{} {unit}", self.max),
        };
        match &self.period {
            Name::Known(BudgetPeriod::Total) => format!("{max} in total"),
            period => format!("{max} a {period}"),
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    /// Parses `UNIT:PERIOD:MAX`, as on the command line.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not UNIT:PERIOD:MAX, such as credits:month:100 or outputs:day:20");
        let [unit, period, max] = text.split(':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let (Ok(unit), Ok(period), Ok(max)) = (unit.parse(), period.parse(), max.parse()) else { return Err(wrong()) };
        Ok(Self { unit, period, max })
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.unit, self.period, self.max)
    }
}

/// Every rule that budgets of one owner break.
pub fn violations(budgets: &[Budget]) -> Vec<Violation> {
    let too_many =
        (budgets.len() > BUDGETS_MAX).then(|| Violation::new("budgets", format!("must be at most {BUDGETS_MAX}")));
    let each = budgets.iter().enumerate().flat_map(|(at, budget)| {
        let max = (!(0..=BUDGET_MAX).contains(&budget.max))
            .then(|| Violation::new(format!("budgets[{at}].max"), format!("must be a number from 0 to {BUDGET_MAX}")));
        let is_same = |it: &Budget| (it.unit, it.period) == (budget.unit, budget.period);
        let earlier = budgets[..at].iter().position(is_same);
        let again = earlier.map(|earlier| {
            let message = format!("has the unit and the period of budgets[{earlier}]; give each pair once");
            Violation::new(format!("budgets[{at}]"), message)
        });
        max.into_iter().chain(again)
    });
    too_many.into_iter().chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(text: &str) -> Budget {
        text.parse().expect("a budget")
    }

    #[test]
    fn a_budget_has_one_form_on_the_command_line() {
        for text in ["credits:month:100", "outputs:day:0", "credits:total:9007199254740991"] {
            assert_eq!(budget(text).to_string(), text);
        }
        for wrong in ["", "credits", "credits:day", "credits:day:", "money:day:1", "credits:week:1", "credits:day:1:2"]
        {
            assert!(wrong.parse::<Budget>().expect_err("no budget").contains("credits:month:100"), "{wrong}");
        }
    }

    #[test]
    fn each_unit_and_period_has_one_budget_from_0_to_the_largest_number() {
        let fields = |texts: &[&str]| {
            let budgets: Vec<Budget> = texts.iter().map(|text| budget(text)).collect();
            violations(&budgets).into_iter().map(|it| it.field).collect::<Vec<_>>()
        };
        assert!(fields(&[]).is_empty());
        assert!(fields(&["credits:day:0", "credits:month:9007199254740991", "outputs:day:1"]).is_empty());
        assert_eq!(fields(&["credits:day:-1", "outputs:day:9007199254740992"]), ["budgets[0].max", "budgets[1].max"]);
        assert_eq!(fields(&["credits:day:1", "outputs:day:1", "credits:day:2"]), ["budgets[2]"]);
        let same = ["credits:day:1"; 9];
        assert_eq!(fields(&same[..8]).len(), 7);
        assert_eq!(fields(&same)[0], "budgets");
    }

    #[test]
    fn a_budget_is_told_in_words() {
        let mut state = BudgetState {
            of: BudgetOwner::Token.into(),
            unit: BudgetUnit::Outputs.into(),
            period: BudgetPeriod::Day.into(),
            max: 5,
            spent: 0,
            left: 5,
            resets_at: None,
            reason: None,
        };
        assert_eq!(state.in_words(), "5 outputs a day");
        (state.unit, state.period, state.max) = (BudgetUnit::Credits.into(), BudgetPeriod::Total.into(), 1);
        assert_eq!(state.in_words(), "1 credit in total");
        (state.unit, state.period) = (Name::Later("money".into()), Name::Later("year".into()));
        assert_eq!(state.in_words(), "1 money a year");
    }
}
