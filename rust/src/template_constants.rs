//! Bounds the constant expressions of a template: the compiler evaluates them (`'x' * 100000000`), at
//! every level of a nested expression again.

use crate::border::Failure;
use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;

const MAX_OPERATORS: u64 = 1000;
const MAX_WORK: u64 = 1 << 30;
const MAX_BYTES: u64 = 16 << 20;

/// What the constants of one tag can make.
struct Tag {
    operators: u64,
    text_bytes: u64,
    numbers: u64,  // their product
    repeats: bool, // has `*`
    powers: bool,  // has `**`
}

impl Tag {
    const EMPTY: Tag = Tag {
        operators: 0,
        text_bytes: 0,
        numbers: 1,
        repeats: false,
        powers: false,
    };

    fn check(&self) -> Result<(), Failure> {
        let repeats = if self.repeats { self.numbers } else { 1 };
        let bytes = self.text_bytes.max(1).saturating_mul(repeats);
        let work = bytes.saturating_mul(self.operators * self.operators);
        // Without `*`, the text is as large as its source.
        if self.operators > MAX_OPERATORS
            || work > MAX_WORK
            || (self.repeats && (self.powers || bytes > MAX_BYTES))
        {
            return Err(Failure::refused("an expression of constants is too large"));
        }
        Ok(())
    }
}

/// Source that is not lexed is left to the compiler, which reports it.
pub fn check(source: &str, syntax: &SyntaxConfig) -> Result<(), Failure> {
    let mut tag = Tag::EMPTY;
    for token in tokenize(source, false, syntax.clone()) {
        let Ok((token, _)) = token else {
            break;
        };
        match &token {
            Token::VariableStart | Token::BlockStart => tag = Tag::EMPTY,
            Token::VariableEnd | Token::BlockEnd => tag.check()?,
            Token::Str(text) => tag.text_bytes += text.len() as u64,
            Token::String(text) => tag.text_bytes += text.len() as u64,
            Token::Int(value) => tag.numbers = tag.numbers.saturating_mul((*value).max(1)),
            Token::Int128(_) => tag.numbers = u64::MAX,
            _ => {}
        }
        match &token {
            Token::Mul => tag.repeats = true,
            Token::Pow => tag.powers = true,
            _ => {}
        }
        if matches!(
            token,
            Token::Plus | Token::Minus | Token::Mul | Token::Tilde | Token::Pow
        ) {
            tag.operators += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_bounded() {
        let syntax = SyntaxConfig::default();
        let refused = |source: &str| check(source, &syntax).is_err();
        assert!(refused("{{ 'x' * 100000000 }}"));
        assert!(refused("{{ (1,) * (100000000) }}"));
        assert!(refused("{{ 'x' * 10 ** 8 }}"));
        assert!(refused("{% set x = (100000 * 'x') * 100000 %}"));
        assert!(refused(&format!("{{{{ 'x'{} }}}}", "~'x'".repeat(2000))));
        assert!(!refused(
            "{{ 'x' * 80 }}{{ a ~ 'x' ~ b }}{{ 60 * 60 * 24 }}"
        ));
        assert!(!refused(&"{{ 'a' ~ 'b' }}".repeat(5000)));
    }
}
