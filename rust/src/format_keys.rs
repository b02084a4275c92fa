//! Keys in format strings: "{a[key]}" and "%(key)s". minijinja reads them byte by byte and panics at the second
//! byte of a character.

/// Whether all keys are ASCII, for a string that is formatted in either style.
pub fn are_ascii(format: &str) -> bool {
    indices_are_ascii(format) && names_are_ascii(format)
}

fn indices_are_ascii(mut text: &str) -> bool {
    while let Some((_, field)) = text.split_once('{') {
        if let Some(rest) = field.strip_prefix('{') {
            text = rest; // a brace
            continue;
        }
        text = field;
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        // Without a name, the bracket is a mistake of another kind.
        while field.starts_with(name) {
            let Some(begun) = text.trim_start_matches(name).strip_prefix('[') else {
                break;
            };
            let (key, rest) = begun.split_once(']').unwrap_or((begun, ""));
            if !key.is_ascii() {
                return false;
            }
            text = rest;
        }
    }
    true
}

fn names_are_ascii(mut text: &str) -> bool {
    while let Some((_, field)) = text.split_once('%') {
        text = field.strip_prefix('%').unwrap_or(field);
        if let Some(begun) = field.strip_prefix('(') {
            let (key, rest) = begun.split_once(')').unwrap_or((begun, ""));
            if !key.is_ascii() {
                return false;
            }
            text = rest;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::are_ascii;

    #[test]
    fn keys_are_found_in_both_styles() {
        for format in [
            "{a[é]}",
            "{0[b][é]}",
            "{a.b[{é",
            "%(é)s",
            "%%%(é",
            "{{{a[é]}",
            "{a}[b] {c[é]}",
            "{a[b].c[é]}",
        ] {
            assert!(!are_ascii(format), "{format}");
        }
        for format in [
            "",
            "é",
            "{a[b]} é",
            "{{a[é]}}",
            "{}[é]",
            "{[é]}",
            "{é}",
            "%s (é)",
            "%%(é)",
            "{a:é<5}",
            "100 % é",
        ] {
            assert!(are_ascii(format), "{format}");
        }
    }
}
