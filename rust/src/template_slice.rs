//! Slices that go backwards, as in `messages[::-1]`. Those of minijinja panic at an empty value, and include
//! the first item if they stop at 0.

use crate::template_budget::{TEXT_PER_WORK, spend_work};
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, Value};
use std::iter::successors;

/// The name of `backwards` as a filter.
pub const BACKWARDS: &str = "octavo_backwards";

/// Before a slice: takes value, start, stop and step, and returns them with the step first. If the slice goes
/// backwards, it is made here, and what remains is a slice of all of it. Mistakes remain for minijinja.
pub fn backwards(operands: &Value) -> Result<Value, Error> {
    let operand = |index| operands.get_item_by_index(index);
    let (value, start, stop, step) = (operand(0)?, operand(1)?, operand(2)?, operand(3)?);
    if let (Some(start), Some(stop), Some(step @ ..=-1)) = (end(&start), end(&stop), step.as_i64())
        && let Some(made) = sliced(&value, |len| indices(len, start, stop, step))?
    {
        let all = || Value::from(());
        return Ok(reversed(made, all(), all(), all()));
    }
    Ok(reversed(value, start, stop, step))
}

fn reversed(value: Value, start: Value, stop: Value, step: Value) -> Value {
    Value::from(Tuple::from(vec![step, stop, start, value]))
}

/// Some(None): there is none. None: it is not a number.
fn end(value: &Value) -> Option<Option<i64>> {
    if value.is_none() {
        return Some(None);
    }
    value.as_i64().map(Some)
}

/// As in Python: an end outside the value moves to the nearest place; -1 is before the first item.
fn indices(
    len: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> impl Iterator<Item = usize> {
    let len = len as i64;
    let place = |at: i64| {
        if at < 0 {
            (at + len).max(-1)
        } else {
            at.min(len - 1)
        }
    };
    let (first, last) = (start.map_or(len - 1, place), stop.map_or(-1, place));
    successors(Some(first), move |at| at.checked_add(step))
        .take_while(move |at| *at > last)
        .map(|at| at as usize)
}

fn sliced<I: Iterator<Item = usize>>(
    value: &Value,
    indices: impl Fn(usize) -> I,
) -> Result<Option<Value>, Error> {
    if let Some(text) = value.as_str() {
        spend_work(1 + text.len() / TEXT_PER_WORK)?;
        let characters: Vec<char> = text.chars().collect();
        let made: String = indices(characters.len()).map(|at| characters[at]).collect();
        return Ok(Some(Value::from(made)));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(None);
    }
    spend_work(1 + value.len().unwrap_or(0))?;
    let items: Vec<Value> = value.try_iter()?.collect();
    let made = indices(items.len()).map(|at| items[at].clone());
    Ok(Some(if value.is_tuple() {
        Value::from(Tuple::from(made.collect::<Vec<_>>()))
    } else {
        Value::from(made.collect::<Vec<_>>())
    }))
}

#[cfg(test)]
mod tests {
    use super::indices;

    fn of(len: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<usize> {
        indices(len, start, stop, step).collect()
    }

    #[test]
    fn ends_are_those_of_python() {
        assert_eq!(of(3, None, None, -1), [2, 1, 0]);
        assert_eq!(of(3, None, Some(0), -1), [2, 1]);
        assert_eq!(of(3, Some(-2), None, -1), [1, 0]);
        assert_eq!(of(4, Some(9), Some(-4), -2), [3, 1]);
        assert_eq!(of(4, Some(9), Some(-9), -3), [3, 0]);
        for (len, start, stop) in [
            (0, None, None),
            (0, Some(0), Some(-1)),
            (3, Some(-9), None),
            (3, Some(1), Some(1)),
            (3, Some(0), Some(2)),
            (3, Some(i64::MIN), Some(i64::MAX)),
        ] {
            assert!(of(len, start, stop, -1).is_empty(), "{start:?} {stop:?}");
        }
        assert_eq!(of(3, None, None, i64::MIN), [2]);
    }
}
