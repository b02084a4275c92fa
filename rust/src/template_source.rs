//! Source-level differences between Jinja as transformers sets it up and minijinja.

/// One newline form, as Jinja's lexer makes it, and `generation` blocks as plain scopes.
pub fn prepare(source: &str) -> String {
    replace_generation_tags(&source.replace("\r\n", "\n").replace('\r', "\n"))
}

/// transformers marks the assistant's part with `{% generation %}`; for the text it is only a scope,
/// so it becomes `with`. Comments and raw blocks are left alone.
fn replace_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%").into_iter().chain(rest.find("{#")).min() {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = if rest.starts_with("{#") {
            rest.find("#}").map_or(rest.len(), |end| end + 2)
        } else {
            tag_length(rest)
        };
        let (tag, after) = rest.split_at(length);
        match tag_name(tag) {
            "generation" => out.push_str(&tag.replacen("generation", "with", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endwith", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn tag_length(rest: &str) -> usize {
    let end = rest.find("%}").map_or(rest.len(), |end| end + 2);
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
    fn other_text_stays_as_it_is() {
        for source in [
            "{# {% generation %} #}x",
            "{% raw %}{% generation %}{% endraw %}",
            "{% set generation = 1 %}{{ generation }}",
            "{% unclosed",
            "{# unclosed",
            "{% raw %} unclosed",
        ] {
            assert_eq!(prepare(source), source);
        }
    }

    #[test]
    fn every_newline_form_becomes_one() {
        assert_eq!(prepare("a\r\nb\rc\n"), "a\nb\nc\n");
    }
}
