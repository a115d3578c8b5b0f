//! Which topics, partitions, offsets and times the filters of a query exclude before anything is read.
//!
//! The query still applies the filters to every row. So a function here may keep rows that do not match, but never omits
//! one that does.

use crate::plan::columns::column_named;
use crate::plan::interval::Interval;
use crate::plan::options::ReadOptions;
use crate::plan::topics::PartitionName;
use crate::plan::values::LEAST_MILLISECONDS;

/// A literal in a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A time in microseconds since the epoch.
    Time(i64),
    /// Any other value, about which nothing is known.
    Other,
}

/// How a column is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Equal,
    EqualNullSafe,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    In,
    IsNull,
    IsNotNull,
    StartsWith,
    EndsWith,
    Contains,
}

impl Operator {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Equal,
            "eqNullSafe" => Self::EqualNullSafe,
            "gt" => Self::Greater,
            "ge" => Self::GreaterOrEqual,
            "lt" => Self::Less,
            "le" => Self::LessOrEqual,
            "in" => Self::In,
            "isNull" => Self::IsNull,
            "isNotNull" => Self::IsNotNull,
            "startsWith" => Self::StartsWith,
            "endsWith" => Self::EndsWith,
            "contains" => Self::Contains,
            _ => return None,
        })
    }
}

/// A comparison of a column with constants, or its negation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The column, by its name in a scan.
    pub column: String,
    /// The comparison.
    pub operator: Operator,
    /// Whether it is negated.
    pub is_negated: bool,
    /// The constants; empty for null. A null in a list equals nothing, and is omitted.
    pub values: Vec<Literal>,
}

impl Condition {
    /// Parses `op, column, type, value…`; `None` for an operator or type that is not known.
    #[must_use]
    pub fn parse(parts: &[String]) -> Option<Self> {
        let [operator, column, kind, values @ ..] = parts else { return None };
        let plain = operator.strip_prefix("not ");
        let operator = Operator::named(plain.unwrap_or(operator))?;
        let literal = |text: &String| match kind.as_str() {
            "string" => Some(Literal::Text(text.clone())),
            "byte" | "short" | "int" | "long" => text.parse().ok().map(Literal::Number),
            "timestamp" => text.parse().ok().map(Literal::Time),
            _ => Some(Literal::Other),
        };
        let values = values.iter().map(literal).collect::<Option<_>>()?;
        Some(Self { column: column.clone(), operator, is_negated: plain.is_some(), values })
    }

    /// The same condition with the column's name in a scan instead of that in a schema.
    #[must_use]
    pub fn of_column(mut self, options: &ReadOptions) -> Self {
        if let Ok(column) = column_named(&self.column, options.view) {
            column.field.clone_into(&mut self.column);
        }
        self
    }

    /// Whether the condition holds for a constant: `None` if that is unknown.
    fn holds(&self, value: Option<&Literal>) -> Option<bool> {
        let is_null_test = matches!(self.operator, Operator::IsNull | Operator::IsNotNull | Operator::EqualNullSafe);
        if value.is_none() && !is_null_test {
            return Some(false); // nor does its negation
        }
        self.matches(value).map(|matches| matches != self.is_negated)
    }

    fn matches(&self, value: Option<&Literal>) -> Option<bool> {
        match self.operator {
            Operator::IsNull => return Some(value.is_none()),
            Operator::IsNotNull => return Some(value.is_some()),
            Operator::EqualNullSafe if self.values.is_empty() => return Some(value.is_none()),
            _ => {}
        }
        if self.values.contains(&Literal::Other) || (self.values.is_empty() && self.operator != Operator::In) {
            return None;
        }
        let first = self.values.first();
        let Some(value) = value else { return Some(false) }; // EqualNullSafe with a constant
        Some(match (self.operator, value, first) {
            (Operator::In, _, _) => self.values.contains(value),
            (Operator::Equal | Operator::EqualNullSafe, _, Some(other)) => value == other,
            (Operator::StartsWith, Literal::Text(text), Some(Literal::Text(part))) => text.starts_with(part),
            (Operator::EndsWith, Literal::Text(text), Some(Literal::Text(part))) => text.ends_with(part),
            (Operator::Contains, Literal::Text(text), Some(Literal::Text(part))) => text.contains(part),
            (operator, Literal::Text(text), Some(Literal::Text(other))) => compares(operator, text.cmp(other))?,
            (operator, Literal::Number(number), Some(Literal::Number(other))) => compares(operator, number.cmp(other))?,
            _ => return None,
        })
    }

    /// The whole numbers that the column may have, given the smallest literal rounded down and the largest rounded up.
    fn interval(&self, floor: i64, ceiling: i64) -> Interval {
        let after = ceiling.checked_add(1);
        if self.is_negated {
            return Interval::EVERYTHING;
        }
        match self.operator {
            Operator::In | Operator::Equal | Operator::EqualNullSafe => Interval::new(Some(floor), after),
            Operator::Greater | Operator::GreaterOrEqual => Interval::new(Some(floor), None),
            Operator::Less | Operator::LessOrEqual => Interval::new(None, after),
            _ => Interval::EVERYTHING,
        }
    }
}

fn compares(operator: Operator, order: std::cmp::Ordering) -> Option<bool> {
    Some(match operator {
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        _ => return None,
    })
}

/// The filters of a query, all of which a row passes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    conditions: Vec<Condition>,
}

impl RowFilter {
    /// Combines conditions.
    #[must_use]
    pub fn new(conditions: Vec<Condition>) -> Self {
        Self { conditions }
    }

    /// Whether a partition may have rows that match.
    pub(crate) fn takes(&self, partition: &PartitionName) -> bool {
        let topic = partition.topic.clone().map(Literal::Text);
        let number = partition.partition.map(|number| Literal::Number(number.into()));
        self.conditions.iter().all(|condition| match condition.column.as_str() {
            "topic" => condition.holds(topic.as_ref()) != Some(false),
            "partition" => condition.holds(number.as_ref()) != Some(false),
            _ => true,
        })
    }

    /// The offsets that rows may have.
    pub(crate) fn offsets(&self) -> Interval {
        self.interval("offset", |value| match value {
            Literal::Number(number) => Some((*number, *number)),
            _ => None,
        })
    }

    /// The timestamps as bounds of a scan, which has no rows without a timestamp if it has any such bound.
    ///
    /// A query sees −1 ms where a record has no timestamp. A filter that −1 ms passes bounds no scan.
    pub(crate) fn scannable_times(&self) -> Interval {
        let times = self.interval("timestamp", |value| match value {
            Literal::Time(micros) => {
                let floor = micros.div_euclid(1000);
                Some((floor, if micros.rem_euclid(1000) == 0 { floor } else { floor.saturating_add(1) }))
            }
            _ => None,
        });
        match times.start {
            Some(start) if start >= 0 && !times.is_empty() => {
                let start = if start < LEAST_MILLISECONDS { 0 } else { start };
                Interval::new(Some(start), times.end.map(|end| end.max(LEAST_MILLISECONDS)))
            }
            _ => Interval::EVERYTHING,
        }
    }

    fn interval(&self, column: &str, bounds: impl Fn(&Literal) -> Option<(i64, i64)>) -> Interval {
        let own = self.conditions.iter().filter(|condition| condition.column == column);
        own.fold(Interval::EVERYTHING, |interval, condition| {
            let values: Option<Vec<(i64, i64)>> = condition.values.iter().map(&bounds).collect();
            let values = values.unwrap_or_default();
            let floor = values.iter().map(|(floor, _)| *floor).min();
            let ceiling = values.iter().map(|(_, ceiling)| *ceiling).max();
            match floor.zip(ceiling) {
                Some((floor, ceiling)) => interval.intersect(condition.interval(floor, ceiling)),
                None => interval,
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    fn filter(all: &[&[&str]]) -> RowFilter {
        let parse =
            |parts: &&[&str]| Condition::parse(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        RowFilter::new(all.iter().map(|parts| parse(parts).unwrap()).collect())
    }

    #[test]
    fn partitions_are_excluded_only_by_what_is_known() {
        let orders = PartitionName::new("orders", 3);
        for (parts, takes) in [
            (&["eq", "topic", "string", "orders"][..], true),
            (&["eq", "topic", "string", "other"], false),
            (&["not eq", "topic", "string", "orders"], false),
            (&["in", "partition", "int", "1", "2"], false),
            (&["not in", "partition", "int", "1", "2"], true),
            (&["gt", "partition", "int", "2"], true),
            (&["startsWith", "topic", "string", "pay"], false),
            (&["isNull", "topic", "null"], false),
            (&["not isNull", "topic", "null"], true),
            (&["isNotNull", "topic", "null"], true),
            (&["eqNullSafe", "topic", "null"], false),
            (&["not eqNullSafe", "topic", "null"], true),
            (&["in", "topic", "string", "b", "orders"], true),
            (&["in", "topic", "null"], false),
            (&["not in", "partition", "int", "3"], false),
            (&["gt", "partition", "long", "3"], false),
            (&["ge", "partition", "long", "3"], true),
            (&["lt", "partition", "long", "3"], false),
            (&["le", "partition", "long", "3"], true),
            (&["endsWith", "topic", "string", "ers"], true),
            (&["contains", "topic", "string", "x"], false),
            (&["not eq", "offset", "long", "5"], true),
            (&["eq", "value", "string", "x"], true),
            (&["eq", "topic", "other", ""], true),
        ] {
            assert_eq!(filter(&[parts]).takes(&orders), takes, "{parts:?}");
        }
        for (parts, takes) in [
            (&["eq", "topic", "string", "orders"][..], false),
            (&["not eq", "topic", "string", "orders"], false),
            (&["eqNullSafe", "topic", "null"], true),
            (&["eqNullSafe", "topic", "string", "orders"], false),
            (&["not eqNullSafe", "topic", "string", "orders"], true),
            (&["isNull", "topic", "null"], true),
            (&["not isNull", "topic", "null"], false),
            (&["lt", "partition", "int", "5"], false),
        ] {
            assert_eq!(filter(&[parts]).takes(&PartitionName::default()), takes, "{parts:?}");
        }
    }

    #[test]
    fn unknown_operators_and_values_are_no_conditions() {
        for parts in [&["like", "topic", "string", "a"][..], &["eq", "offset", "long", "1e3"], &["eq", "topic"]] {
            assert_eq!(Condition::parse(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>()), None);
        }
    }

    #[test]
    fn offsets_become_intervals() {
        let offsets = |all: &[&[&str]]| filter(all).offsets();
        let between = offsets(&[&["ge", "offset", "long", "3"], &["lt", "offset", "long", "9"]]);
        assert_eq!(between, Interval::new(Some(3), Some(10)));
        assert_eq!(offsets(&[&["eq", "offset", "long", "7"]]), Interval::new(Some(7), Some(8)));
        assert_eq!(offsets(&[&["in", "offset", "long", "9", "2"]]), Interval::new(Some(2), Some(10)));
        assert_eq!(offsets(&[&["in", "offset", "null"]]), Interval::EVERYTHING);
        assert_eq!(offsets(&[&["not lt", "offset", "long", "7"]]), Interval::EVERYTHING);
        assert_eq!(offsets(&[&["eq", "partition", "long", "7"]]), Interval::EVERYTHING);
        let both = offsets(&[&["gt", "offset", "long", "4"], &["gt", "offset", "long", "2"]]);
        assert_eq!(both, Interval::new(Some(4), None));
        assert_eq!(offsets(&[&["gt", "offset", "long", "9223372036854775807"]]).start, Some(i64::MAX));
        assert_eq!(offsets(&[&["le", "offset", "long", "9223372036854775807"]]), Interval::EVERYTHING);
    }

    /// The bounds of a scan with comparisons of the timestamp and milliseconds since the epoch.
    fn times(all: &[(&str, i64)]) -> Interval {
        let condition = |(operator, time): &(&str, i64)| {
            let micros = time.saturating_mul(1000).to_string();
            Condition::parse(&[*operator, "timestamp", "timestamp", &micros].map(str::to_owned)).unwrap()
        };
        RowFilter::new(all.iter().map(condition).collect()).scannable_times()
    }

    #[test]
    fn times_bound_a_scan_if_they_exclude_records_without_a_timestamp() {
        const TIME: i64 = 1_700_000_000_000;
        assert_eq!(times(&[("ge", TIME)]), Interval::new(Some(TIME), None));
        assert_eq!(times(&[("eq", TIME)]), Interval::new(Some(TIME), Some(TIME + 1)));
        assert_eq!(times(&[("ge", TIME), ("lt", TIME + 9)]), Interval::new(Some(TIME), Some(TIME + 10)));
        // a query sees -1 ms for records without a timestamp, which these filters keep
        assert_eq!(times(&[("lt", TIME)]), Interval::EVERYTHING);
        assert_eq!(times(&[("gt", -5), ("lt", TIME)]), Interval::EVERYTHING);
        assert_eq!(times(&[("eq", -1)]), Interval::EVERYTHING);
        // a scan refuses times that look like seconds
        assert_eq!(times(&[("gt", 1000), ("lt", 5000)]), Interval::new(Some(0), Some(LEAST_MILLISECONDS)));
        assert_eq!(times(&[("gt", 5000), ("lt", 1000)]), Interval::EVERYTHING);
    }

    #[test]
    fn times_are_rounded_outwards() {
        let time = |parts: &[&str]| filter(&[parts]).scannable_times();
        let floor = 1_700_000_000_005;
        assert_eq!(time(&["gt", "timestamp", "timestamp", "1700000000005500"]), Interval::new(Some(floor), None));
        let equal = time(&["in", "timestamp", "timestamp", "1700000000009000", "1700000000005500"]);
        assert_eq!(equal, Interval::new(Some(floor), Some(floor + 5)));
        let before = filter(&[
            &["gt", "timestamp", "timestamp", "1700000000005500"],
            &["le", "timestamp", "timestamp", "1700000000007500"],
        ]);
        assert_eq!(before.scannable_times(), Interval::new(Some(floor), Some(floor + 4)));
        assert_eq!(time(&["eq", "timestamp", "string", "2026-11-22"]), Interval::EVERYTHING);
    }
}
