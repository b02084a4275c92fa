"""Answers of the stub, selected by the prompt's first word."""

HTML = "Look: <script>window.pwned = 1</script> <img src=x onerror='window.pwned = 1'> & <b>bold</b>."
CODE = (
    "A page is given back like this:\n\n```cpp\nvoid PagePool::give_back(PageId page) {\n"
    "  if (--references_[page] == 0) free_.push_back(page);  // the newest is the likeliest to be warm\n}\n```\n\n"
    "The count reaches zero when the last sequence lets go, so a page that two prompts share is kept until both are done."
)
MARKDOWN = """# Heading one

Some **bold**, *slanted* and ~~struck~~ text with `inline <code>` and &lt;entities&gt; &copy; &#8364;.

## Lists

1. first
2. second
   - nested *item*
   - another

- [x] done
- [ ] not done

> A quote
> of two lines.

| Name | Size | Share |
|:-----|-----:|:-----:|
| weights | 1.2 GB | 60 % |
| **pages** | 0.8 GB | 40 % |

---

```python
def twice(number: int) -> int:
    # a comment
    return 2 * number  # "text"
```

```
no language
```
"""
LINKS = """[site](https://example.org/a?b=1) <https://example.com/> me@example.org
[script](javascript:window.pwned=1) [data](data:text/html,<script>1</script>) [odd](JaVaScRiPt:window.pwned=1) [here](/v1/models)
[entity](&#106;avascript:window.pwned=1) [vb](vbscript:x) ![picture](https://example.org/pixel.png)
[quote](https://example.org/"onclick="window.pwned=1)
"""
TRAIN = """A train that leaves at **9:40** and travels 150 km at 100 km/h arrives at **11:10**.

1. Time on the way: `150 / 100 = 1.5` hours, which is 1 h 30 min.
2. Departure plus time: 9:40 + 1:30 = 11:10.

| Speed | Time | Arrival |
|------:|-----:|--------:|
| 75 km/h | 2 h 00 min | 11:40 |
| 100 km/h | 1 h 30 min | 11:10 |
| 150 km/h | 1 h 00 min | 10:40 |
"""
ARRIVAL = """Yes. This function adds the hours to the time of departure:

```python
from datetime import datetime, timedelta

def arrival(departure: str, km: float, km_per_hour: float) -> str:
    start = datetime.strptime(departure, "%H:%M")
    return (start + timedelta(hours=km / km_per_hour)).strftime("%H:%M")

print(arrival("9:40", 150, 100))  # 11:10
```
"""
SKY = "Air scatters short waves of light more than long ones, so blue light reaches your eyes from every direction."
PLAIN = "Café — the answer to “{}” is short."

# The last three are for tools/page_shots.py.
BY_WORD = {"html": HTML, "code": CODE, "markdown": MARKDOWN, "links": LINKS, "slow": "tick " * 2000,
           "Why": SKY, "A": TRAIN, "Can": ARRIVAL}
