//! Adds the checks of `template_guard` to a compiled template: after each instruction that makes a
//! value, and before each one whose cost depends on its operands. Values made by filters and methods
//! are checked where those are registered.

use crate::template_guard::{ATTRIBUTE, BUILT, COMPARED, CONCAT, MADE, MULTIPLIED, SLICED, STORED};
use crate::template_slice::BACKWARDS;
use minijinja::Value;
use minijinja::machinery::{Instruction, Instructions};

/// No cached lookup of the filter.
const UNCACHED: u8 = !0;

fn check(name: &'static str) -> Instruction<'static> {
    Instruction::ApplyFilter(name, Some(1), UNCACHED)
}

/// The operands as one value through a check, and back on the stack.
fn check_operands(name: &'static str) -> [Instruction<'static>; 4] {
    [
        Instruction::BuildTuple(Some(2)),
        check(name),
        Instruction::UnpackList(2), // leaves the first operand on top
        Instruction::Swap,
    ]
}

/// True if the value that the instruction after `before` stores was checked when it was made: an item
/// of a loop or a part of an unpacked list.
fn stores_a_part(before: Option<&Instruction<'_>>) -> bool {
    matches!(
        before,
        Some(
            Instruction::Iterate(_)
                | Instruction::DupTop
                | Instruction::UnpackList(_)
                | Instruction::StoreLocal(_)
                | Instruction::BuildMacro(..)
        )
    )
}

fn expand<'s>(
    instruction: &Instruction<'s>,
    before: Option<&Instruction<'s>>,
) -> Vec<Instruction<'s>> {
    use Instruction as I;
    let own = instruction.clone();
    match instruction {
        // Raw text passes the formatter, which counts it.
        I::EmitRaw(text) => vec![
            I::LoadConst(Value::from_safe_string((*text).to_string())),
            I::Emit,
        ],
        I::StringConcat => vec![I::ApplyFilter(CONCAT, Some(2), UNCACHED)],
        I::Add => vec![own, check(MADE)],
        I::Slice => {
            let operands = I::BuildTuple(Some(4));
            // Leaves the last item, the value, at the bottom.
            vec![
                operands,
                check(BACKWARDS),
                I::UnpackList(4),
                own,
                check(SLICED),
            ]
        }
        I::Mul => {
            let [tuple, checked, unpack, swap] = check_operands(MULTIPLIED);
            vec![tuple, checked, unpack, swap, own, check(SLICED)]
        }
        I::Eq | I::Ne | I::Gt | I::Gte | I::Lt | I::Lte | I::In | I::CompareAndPreserve(_) => {
            let [tuple, checked, unpack, swap] = check_operands(COMPARED);
            vec![tuple, checked, unpack, swap, own]
        }
        I::BuildList(_) | I::BuildTuple(_) | I::BuildMap(_) => vec![own, check(BUILT)],
        I::SetAttr(_) => vec![I::Swap, check(ATTRIBUTE), I::Swap, own],
        I::StoreLocal(_) if !stores_a_part(before) => vec![check(STORED), own],
        _ => vec![own],
    }
}

/// `code` with the checks; jumps lead to the first instruction that replaced their target.
pub fn with_checks<'s>(code: &Instructions<'s>) -> Instructions<'s> {
    let mut checked = Instructions::new(code.name(), code.source());
    let mut start_of = Vec::new();
    let mut before = None;
    let mut next = 0;
    for index in 0.. {
        let Some(instruction) = code.get(index) else {
            break;
        };
        start_of.push(next);
        for made in expand(instruction, before) {
            next = match code.get_span(index) {
                Some(span) => checked.add_with_span(made, span),
                None => match code.get_line(index) {
                    Some(line) => checked.add_with_line(made, u16::try_from(line).unwrap_or(!0)),
                    None => checked.add(made),
                },
            } + 1;
        }
        before = Some(instruction);
    }
    start_of.push(next); // a jump may lead past the last instruction
    for index in 0..next {
        use Instruction as I;
        if let Some(
            I::Jump(target)
            | I::JumpIfFalse(target)
            | I::JumpIfFalseOrPop(target)
            | I::JumpIfTrueOrPop(target)
            | I::Iterate(target)
            | I::BuildMacro(_, target, _),
        ) = checked.get_mut(index)
        {
            *target = start_of.get(*target as usize).copied().unwrap_or(next);
        }
    }
    checked
}
