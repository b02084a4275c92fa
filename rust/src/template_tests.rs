//! Tests of template.rs.

use super::*;

fn render(source: &str, context: &str) -> Result<String, Failure> {
    let limits = Limits {
        output_bytes: 1000,
        stack_bytes: 64 << 20,
    };
    Template::new(source, limits)?.render(context.as_bytes(), 100_000, None)
}

#[test]
fn raise_exception_inside_a_macro_keeps_its_message() {
    let source = "{% macro m() %}{{ raise_exception('no ' ~ x) }}{% endmacro %}{{ m() }}";
    let failure = render(source, r#"{"x": "system"}"#).unwrap_err();
    assert_eq!(failure.status, Status::Raised);
    assert_eq!(failure.message, "no system");
}

#[test]
fn an_undefined_value_has_no_items() {
    let source = "{% for name, _ in tool.properties|items %}{{ name }}{% endfor %}\
                  {{ tool.properties|length }}{{ tool.properties|count }}";
    let rendered = |context| render(source, context).ok();
    assert_eq!(rendered(r#"{"tool": {}}"#), Some("00".into()));
    assert_eq!(
        rendered(r#"{"tool": {"properties": {"a": 1}}}"#),
        Some("a11".into())
    );
    assert_eq!(rendered(r#"{"tool": {"properties": 1}}"#), None);
}

#[test]
fn steps_and_output_are_bounded() {
    for (source, message) in [
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "the chat template took more than 100000 steps",
        ),
        (
            "{% for i in range(2000) %}x{% endfor %}",
            "the rendered text exceeds the limit on its size",
        ),
    ] {
        let failure = render(source, "{}").unwrap_err();
        assert_eq!(failure.status, Status::Limit);
        assert_eq!(failure.message, message);
    }
}

#[test]
fn slices_backwards_are_those_of_python() {
    let source = "{{ x[::-1] }} {{ x[:0:-1] }} {{ x[-2::-1] }} {{ x[9:-4:-2] }} {{ x[-9::-1] }}";
    for (context, rendered) in [
        (r#"{"x": "abcd"}"#, "dcba dcb cba db "),
        (r#"{"x": ""}"#, "    "),
        (r#"{"x": []}"#, "[] [] [] [] []"),
        (r#"{"x": [1, 2]}"#, "[2, 1] [2] [1] [2] []"),
    ] {
        assert_eq!(render(source, context).unwrap(), rendered);
    }
    let tuple = render(
        "{{ (1, 2)[::-1] }} {% for x in (1, 2)[::-1] %}{{ x }}{% endfor %}",
        "{}",
    );
    assert_eq!(tuple.unwrap(), "(2, 1) 21");
    for wrong in ["'a'[:'b':-1]", "1[::-1]", "{'a': 1}[::-1]", "'a'[::0]"] {
        assert!(
            render(&format!("{{{{ {wrong} }}}}"), "{}").is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn keys_of_format_strings_are_ascii() {
    for source in [
        "{{ '{a[\u{e9}]}'.format(a=1) }}",
        "{{ '%(\u{e9})s' | format({}) }}",
    ] {
        let failure = render(source, "{}").unwrap_err();
        assert_eq!(failure.status, Status::Refused);
        assert!(failure.message.contains("not ASCII"), "{}", failure.message);
    }
    let plain = render("{{ '{a[b]} \u{e9}'.format(a={'b': 1}) }}", "{}");
    assert_eq!(plain.unwrap(), "1 \u{e9}");
}

/// Values that double forty times, by every construct that can carry one value to the next.
#[test]
fn values_that_double_are_refused() {
    let nested = |open: &str, close: &str| {
        format!(
            "{{% set x = 'ab' %}}{}{{{{ x|length }}}}{}",
            open.repeat(40),
            close.repeat(40)
        )
    };
    let grown = |by: &str| {
        format!("{{% set n = namespace(x='ab') %}}{{% for i in range(60) %}}{by}{{% endfor %}}")
    };
    for source in [
            nested("{% set x = x ~ x %}", ""),
            nested("{% set x %}{{ x }}{{ x }}{% endset %}", ""),
            nested("{% set x = x + x %}", ""),
            nested("{% set x = x * 2 %}", ""),
            nested("{% set x = [x, x]|join %}", ""),
            nested("{% set x = x|replace('a', 'aa')|replace('b', 'bb') %}", ""),
            nested("{% set x = x.replace('', x) %}", ""),
            nested("{% set x = x.join([x, x]) %}", ""),
            nested("{% set x = '%s%s'|format(x, x) %}", ""),
            nested("{% set x = '{}{}'.format(x, x) %}", ""),
            nested("{% with x = x ~ x %}", "{% endwith %}"),
            nested("{% for x in [x ~ x] %}", "{% endfor %}"),
            nested("{% filter replace('a', 'aa') %}", "{% endfilter %}")
                .replace("{{ x|length }}", "a"),
            grown("{% set n.x = n.x ~ n.x %}"),
            grown("{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}"),
            grown("{% set n.x = [n.x, n.x]|map('string')|list|tojson %}"),
            "{% macro m(x, d) %}{% if d %}{{ m(x ~ x, d - 1) }}{% endif %}{% endmacro %}{{ m('ab', 60) }}"
                .into(),
        ] {
            let start = std::time::Instant::now();
            let failure = render(&source, "{}").unwrap_err();
            assert_eq!(failure.status, Status::Limit, "{source}: {}", failure.message);
            assert!(start.elapsed().as_secs() < 5, "{source}");
        }
}

#[test]
fn a_limit_is_named() {
    let source = format!("{{% set x = 'ab' %}}{}", "{% set x = x ~ x %}".repeat(40));
    assert_eq!(
        render(&source, "{}").unwrap_err().message,
        "the chat template made more than 64 MiB of text"
    );
}

#[test]
fn large_values_of_one_step_are_refused() {
    for source in [
        "{% set n = 9999 %}{{ (('x' * n) * n)|length }}",
        "{% set n = 99999999 %}{{ ((1,) * n)|length }}",
        "{% set n = 99999999 %}{{ ([1] * n)|list|length }}",
        "{{ [1]|batch(99999999, 0)|list|length }}",
        "{{ [1]|slice(99999999)|list|length }}",
        "{{ range(99999)|join('x' * 9999)|length }}",
        "{{ '%999999999d'|format(1) }}",
        "{{ '%-*d'|format(999999999, 1) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '{:>{}}'.format(1, 999999999) }}",
        "{{ 'a\nb'|indent(999999999) }}",
        "{{ 'a\nb'|indent(width=999999999) }}",
        "{% set x = range(9999)|join %}{% for i in range(9999) %}{% set y %}{{ x }}{% endset %}{% endfor %}",
        "{{ 'x' * 100000000 }}",
        "{{ debug() }}",
        "{% include 'chat_template' %}",
    ] {
        render(source, "{}").unwrap_err();
    }
}

#[test]
fn values_that_hold_themselves_many_times_are_refused() {
    for source in [
        "{% set n = namespace() %}{% set n.x = n %}{{ n }}".to_string(),
        "{% set n = namespace() %}{% set n.x = [{'a': n}] %}{{ n }}".into(),
        "{% set n = namespace() %}{% set n.x|default(n, true) %}{% endset %}{{ n }}".into(),
        "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}"
            .into(),
        format!(
            "{{% set x = [] %}}{}{{{{ x == x }}}}",
            "{% set x = [x, x] %}".repeat(60)
        ),
        format!(
            "{{% set x = [] %}}{}{{{{ x == x }}}}{}",
            "{% for x in [[x, x]] %}".repeat(60),
            "{% endfor %}".repeat(60)
        ),
    ] {
        render(&source, "{}").unwrap_err();
    }
    let slices = "{% set n = namespace(x=[1]) %}{% for i in range(2000) %}\
                      {% set n.x = n.x[0:] + [i] %}{% set n.x = n.x[1:] %}{% endfor %}{{ n.x }}";
    assert_eq!(render(slices, "{}").unwrap(), "[1999]");
}

#[test]
fn time_spent_searching_is_bounded() {
    let text = "a".repeat(1 << 20);
    for by in [
        "'b' in x",
        "x == x ~ ''",
        "x.find('b') > 0",
        "x|trim == 'b'",
    ] {
        let source =
            format!("{{% for i in range(9999) %}}{{% if {by} %}}{{% endif %}}{{% endfor %}}");
        let start = std::time::Instant::now();
        let failure = render(&source, &format!(r#"{{"x": "{text}"}}"#)).unwrap_err();
        assert_eq!(failure.status, Status::Limit, "{by}: {}", failure.message);
        assert!(start.elapsed().as_secs() < 10, "{by}");
    }
}

#[test]
fn the_flag_stops_a_rendering() {
    let limits = Limits {
        output_bytes: 1000,
        stack_bytes: 64 << 20,
    };
    let template = Template::new("{% for i in range(9) %}x{% endfor %}", limits).unwrap();
    let stop = AtomicBool::new(true);
    let failure = template.render(b"{}", 100_000, Some(&stop)).unwrap_err();
    assert_eq!(failure.status, Status::Stopped);
    assert_eq!(template.render(b"{}", 100_000, None).unwrap(), "xxxxxxxxx");
}

#[test]
fn checks_do_not_change_results() {
    for (source, expected) in [
        ("{{ 1 + 2 * 3 }}{{ [1] * 2 }}{{ 2 * 'ab' }}", "7[1, 1]abab"),
        (
            "{{ 'a' ~ 1.0 ~ none ~ [1] }}{{ 'abc'[1:] }}",
            "a1.0None[1]bc",
        ),
        (
            "{{ 1 < 2 < 3 }}{{ 'a' in 'abc' }}{{ 3 in [1] }}{{ 5 - 2 * 2 }}",
            "TrueTrueFalse1",
        ),
        (
            "{% for m in [1, 2, 3, 4] if m > 1 and m != 3 %}{{ m }}{{ ',' if not loop.last }}{% endfor %}",
            "2,4",
        ),
        (
            "{% for a, b in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% else %}none{% endfor %}",
            "1234",
        ),
        (
            "{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
            "02",
        ),
        (
            "{% macro m(a, b='x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}",
            "1x12",
        ),
        (
            "{% for x in [[1, [2]]] recursive %}{% if x is number %}{{ x }}{% else %}({{ loop(x) }}){% endif %}{% endfor %}",
            "(1(2))",
        ),
        (
            "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set n = namespace(x=1) %}{% set n.x = n.x + 1 %}{{ n.x }}",
            "122",
        ),
        (
            "{{ [3, 1, 2]|sort|map('string')|join(',') }}{{ {'a': 1}|items|list }}",
            "1,2,3[('a', 1)]",
        ),
        ("{{ x.y is defined }}{{ ('a' or 'b') and 'c' }}", "Falsec"),
    ] {
        assert_eq!(
            render(source, r#"{"x": {}}"#).unwrap(),
            expected,
            "{source}"
        );
    }
}

#[test]
fn filters_take_positional_and_named_arguments() {
    let context = r#"{"t": [{"n": "a", "v": 2}, {"n": "b", "v": 1}], "m": {"k": 1}, "s": "a\nb"}"#;
    let mut wrong = Vec::new();
    for (source, expected) in [
        ("{{ m|tojson(indent=2) }}", "{\n  \"k\": 1\n}"),
        (
            "{{ no|default('d') }}{{ ''|default('e', true) }}{{ ''|d('f', true) }}",
            "def",
        ),
        (
            "{{ t|map(attribute='n')|join(', ') }}{{ t|join('-', attribute='n') }}",
            "a, ba-b",
        ),
        ("{{ t|selectattr('n', 'equalto', 'b')|list|length }}", "1"),
        (
            "{{ (t|selectattr('v', '>', 1)|first).n }}{{ (t|sort(attribute='v')|first).n }}",
            "ab",
        ),
        (
            "{{ s|indent(2) }}|{{ s|indent(width=1, first=true) }}",
            "a\n  b| a\n b",
        ),
        (
            "{{ '%s-%d'|format('x', 3) }}{{ '{}{}'.format(1, 'y') }}",
            "x-31y",
        ),
        (
            "{% for k, v in m.items() %}{{ k }}{{ v }}{% endfor %}{{ m.get('k') }}{{ m.get('z', 0) }}",
            "k110",
        ),
        (
            "{% for k, v in m|dictsort %}{{ k }}{{ v }}{% endfor %}{{ m|items|list|length }}",
            "k11",
        ),
        (
            "{{ s.split('\n')[-1] }}{{ s.replace('a', 'c')|upper }}{{ ' x '.strip() }}",
            "bC\nBx",
        ),
        (
            "{{ t[1:]|length }}{{ t[::-1][0].n }}{{ (t + t)|length }}{{ t|last|attr('n') }}",
            "1b4b",
        ),
        (
            "{% filter upper %}x{{ s }}{% endfilter %}{% set b %}y{% endset %}{{ b }}",
            "XA\nBy",
        ),
        (
            "{{ [1, 2, 3]|sum }}{{ [2, 1]|max }}{{ 3.7|int }}{{ '5'|int + 1 }}{{ 2.5|round }}",
            "62362.0",
        ),
        (
            "{{ 'a' 'b' if true }}{{ [1, 2]|batch(1)|list }}{{ 'ab'|list }}",
            "ab[[1], [2]]['a', 'b']",
        ),
    ] {
        let rendered = render(source, context).map_err(|f| f.message);
        if rendered.as_deref() != Ok(expected) {
            wrong.push((source, rendered));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Without the checks in the code; the filters have them.
fn render_plainly(source: &str, context: &str) -> Result<String, Error> {
    let mut environment = environment(syntax()?);
    environment.set_fuel(Some(1_000_000));
    let _budget = template_budget::Scope::begin(1_000_000, context.len(), None);
    environment.add_template_owned(NAME, template_source::prepare(source))?;
    let context: serde_json::Value = serde_json::from_str(context).unwrap_or_default();
    environment
        .get_template(NAME)?
        .render(Value::from(Serde(context)))
}

#[test]
fn checks_do_not_change_what_models_templates_render() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/e2e/templates");
    let chats = [
        r#"[{"role": "user", "content": "hi"}]"#,
        r#"[{"role": "system", "content": " s "}, {"role": "user", "content": "a"},
                {"role": "assistant", "content": "<think>t</think>b", "tool_calls": [{"type": "function",
                 "id": "abcdefghi", "function": {"name": "f", "arguments": {"x": [1, {"y": null}]}}}]},
                {"role": "tool", "content": "7", "name": "f", "tool_call_id": "abcdefghi"},
                {"role": "user", "content": "c"}]"#,
    ];
    let tools = r#"[{"type": "function", "function": {"name": "f", "description": "d", "parameters":
            {"type": "object", "properties": {"x": {"type": "array", "description": "e"}}, "required": []}}}]"#;
    let mut rendered = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let limits = Limits {
            output_bytes: 1 << 20,
            stack_bytes: 64 << 20,
        };
        let template = Template::new(&source, limits).unwrap();
        for chat in chats {
            for tools in ["null", tools] {
                let context = format!(
                    r#"{{"messages": {chat}, "tools": {tools}, "add_generation_prompt": true,
                            "bos_token": "<s>", "eos_token": "</s>"}}"#
                );
                let checked = template.render(context.as_bytes(), 1_000_000, None);
                let plain = render_plainly(&source, &context);
                match plain {
                    Ok(plain) => assert_eq!(checked.unwrap(), plain),
                    Err(_) => assert_ne!(checked.unwrap_err().status, Status::Limit),
                }
                rendered += 1;
            }
        }
    }
    assert!(rendered >= 24);
}

#[test]
fn json_is_written_as_python_writes_it() {
    assert_eq!(
        render(
            "{{ x|tojson }}",
            r#"{"x": {"b": [1, 2.0, "é\n"], "a": null}}"#
        )
        .unwrap(),
        r#"{"b": [1, 2.0, "é\n"], "a": null}"#
    );
}
