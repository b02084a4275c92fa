//! Rewrites template sources where minijinja differs from transformers' Jinja.

/// Normalizes line breaks as Jinja's lexer does, and turns `generation` blocks into plain scopes.
pub fn prepare(source: &str) -> String {
    rewrite_tags(&source.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Leaves comments and raw blocks unchanged.
fn rewrite_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = tag_start(rest) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = if rest.starts_with("{#") {
            rest.find("#}").map_or(rest.len(), |end| end + 2)
        } else {
            tag_length(rest)
        };
        let (tag, after) = rest.split_at(length);
        match tag_name(tag) {
            // Marks the assistant's part for transformers; for rendering it is only a scope.
            "generation" => out.push_str(&tag.replacen("generation", "with", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn tag_start(text: &str) -> Option<usize> {
    text.as_bytes()
        .windows(2)
        .position(|pair| pair == b"{%" || pair == b"{#")
}

/// The tag's length, ignoring tag ends inside strings; for a raw block, up to `endraw`.
fn tag_length(rest: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    let mut end = rest.len();
    for (at, c) in rest.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if rest[at..].starts_with("%}") => {
                end = at + 2;
                break;
            }
            None => {}
        }
    }
    if tag_name(&rest[..end]) != "raw" {
        return end;
    }
    rest.find("endraw").unwrap_or(rest.len())
}

fn tag_name(tag: &str) -> &str {
    let Some(inside) = tag.strip_prefix("{%") else {
        return "";
    };
    let inside = inside.trim_start_matches(['-', '+']).trim_start();
    let end = inside
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(inside.len());
    &inside[..end]
}

#[cfg(test)]
mod tests {
    use super::prepare;

    #[test]
    fn generation_becomes_a_scope_and_keeps_its_dashes() {
        assert_eq!(
            prepare("a {%- generation -%} b {% endgeneration %}"),
            "a {%- with -%} b {% endwith %}"
        );
    }

    #[test]
    fn other_text_is_unchanged() {
        for source in [
            "{# {% generation %} #}x",
            "{% raw %}{% generation %}{% endraw %}",
            "{% if generation %}{{ generation }}{% endif %}",
            "{% unclosed",
            "{# unclosed",
            "{% raw %} unclosed",
        ] {
            assert_eq!(prepare(source), source);
        }
    }

    #[test]
    fn line_breaks_are_normalized() {
        assert_eq!(prepare("a\r\nb\rc\n"), "a\nb\nc\n");
    }
}
