"""Makes the grid's pages of its reports.

    page.py not-run CLAIMS REASON            a report without cases, to standard output
    page.py failed REPORT                    the numbers of its failed cases
    page.py again FOLDER                     how often each case of a repeated run came to what
    page.py page HTML MD OUT REPORT...       OUT.html, OUT.md and OUT.json: what `ressac prove
                                             compare` wrote, under a table for the hasty reader
    page.py check OLD.json NEW.json          1 if any verdict differs
    page.py same GRID.json REPORT...         1 if the page's verdicts are not those of the reports
"""

import datetime
import html
import json
import pathlib
import re
import sys
import tomllib

# What a person wants to know first, and the cases that tell.
TWICE = ["E01", "E02", "F02", "F06", "G04"]
EARLY = ["C01", "C02", "C03", "C04", "C07", "C08"]
CROWD = ["H04", "H05"]
SHORT = ["E11", "E12", "F03", "F04", "G06"]


def not_run(claims, reason):
    told = tomllib.loads(pathlib.Path(claims).read_text())
    client = told["client"]
    client["version"] = f"{client.get('version', '')} (not run: {reason})"
    words = ["pass", "warn", "fail", "inconclusive", "not_claimed", "known_failing"]
    totals = dict.fromkeys(words, 0)
    print(json.dumps({
        "schema": 1, "suite": "", "client": client, "claims": {}, "claims_count": 0,
        "profile": "ressac", "tempo": "fast", "seed": 0, "host": {"cores": 0}, "lambda_ms": 0.0,
        "epsilon_ms": 0.0, "took_ms": 0, "totals": totals, "cases": [],
    }))


def verdicts(report):
    return {case["id"].split("/")[0]: case["verdict"] for case in report["cases"]}


def bad(found, cases, words=("fail", "warn")):
    return [case for case in cases if found.get(case) in words]


def answers(report):
    """Twice, early, crowd, short: the four answers, each as (good, text)."""
    found, claims = verdicts(report), report["claims"]
    if not found:
        return [(None, "not run")] * 4
    twice = bad(found, TWICE, ("fail",))
    early = bad(found, EARLY, ("fail",))
    crowd = bad(found, CROWD)
    short = bad(found, SHORT)
    unclear = bad(found, EARLY, ("inconclusive",))
    kept = "unclear: " + " ".join(unclear) if unclear else "kept"
    reads = "seconds" in ((claims.get("retry_after") or {}).get("forms") or [])
    jitter = (claims.get("backoff") or {}).get("jitter", "none")
    return [
        (not twice, "may: " + " ".join(twice) if twice else "no"),
        (None if reads and unclear and not early else reads and not early,
         "not read" if not reads else "broken: " + " ".join(early) if early else kept),
        (jitter != "none" and not crowd,
         "no jitter" if jitter == "none" else "crowds: " + " ".join(crowd) if crowd else "spreads"),
        (not short, "may: " + " ".join(short) if short else "no"),
    ]


HEADS = ["client", "pays twice", "Retry-After", "after an outage", "short bodies",
         "fail", "warn", "pass", "unclaimed", "inconclusive"]
NOTE = (
    "A red cell is not the same as a bad library: a client fails a case when its documented use, "
    "with its documented options, does on the wire what the case forbids. Wrappers that know no "
    "HTTP repeat whatever they wrap; that they do not stop a POST is what the first column says. "
    "A full column is no seal, and an empty claim is asked for nothing. How a row is made, and how "
    "to correct it: grid/README.md. Each red cell was run twenty times more; how often it was red, "
    "and the line that runs it again, stands below the table. What each comes from: "
    "grid/FINDINGS.md."
)


def table(reports):
    for name, report in reports:
        totals = report["totals"]
        yield name, report, answers(report), [
            totals[key] for key in ("fail", "warn", "pass", "not_claimed", "inconclusive")
        ]


def markdown(reports, compared):
    lines = ["# The grid: clients as they are", "", "Made by `grid/run.sh`; do not edit.", ""]
    lines += [NOTE, ""]
    lines += ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    for _, report, four, totals in table(reports):
        client = report["client"]
        cells = [f"**{client['name']}** {client['version']}"]
        cells += [text if good else f"**{text}**" for good, text in four]
        lines.append("| " + " | ".join(cells + [str(n) for n in totals]) + " |")
    lines += ["", "## Red cells, run again", "",
              "| row | case | failed | run it again |", "|---|---|---|---|"]
    lines += [f"| {row} | {case} | {often} | `{line}` |" for row, case, often, line in red(reports)]
    return "\n".join(lines) + "\n\n## Every case\n\n" + compared


def page(reports, compared):
    rows = []
    for name, report, four, totals in table(reports):
        client = report["client"]
        said = html.escape(client["version"])
        head = f"<th>{html.escape(client['name'])}<br><small>{said}</small></th>"
        colour = {None: "", True: "pass", False: "fail"}
        cells = "".join(
            f'<td class="v {colour[good]}">{html.escape(text)}</td>' for good, text in four)
        rows.append(f"<tr>{head}{cells}" + "".join(f"<td>{n}</td>" for n in totals) + "</tr>")
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    top = (f"<h1>The grid: clients as they are</h1><p>{html.escape(NOTE)}</p>"
           f"<table><tr>{heads}</tr>" + "\n".join(rows) + "</table>"
           "<details><summary>Red cells, run again</summary><table><tr><th>row</th><th>case</th>"
           "<th>failed</th><th>run it again</th></tr>" + "\n".join(
               f"<tr><td>{html.escape(row)}</td><td>{case}</td><td>{often}</td>"
               f"<td><code>{html.escape(line)}</code></td></tr>"
               for row, case, often, line in red(reports)) + "</table></details>")
    # The traces are not published: a cell leads to the report that its row was made of.
    for name, report in reports:
        inside = re.escape(html.escape(report["client"]["name"])) + "/report\\.html#[A-Z0-9]+"
        compared = re.sub(f'href="{inside}"', f'href="../grid/reports/{name}.json"', compared)
    wide = "<style>body{max-width:none}td,th{vertical-align:top}</style>"
    return compared.replace("<h1>", wide + top + "\n<h1>", 1)


def summary(reports):
    rows = []
    for name, report in reports:
        four = answers(report)
        rows.append({
            "row": name, "client": report["client"], "claims": report["claims_count"],
            "profile": report["profile"], "tempo": report["tempo"], "seed": report["seed"],
            "suite": report["suite"], "cores": report["host"]["cores"],
            "max_lag_ms": report["host"].get("max_lag_ms", 0),
            "lambda_ms": report["lambda_ms"], "took_ms": report["took_ms"],
            "totals": report["totals"],
            "answers": dict(zip(["pays_twice", "retry_after", "crowd", "short_body"],
                                [text for _, text in four])),
            "verdicts": verdicts(report), "again": report.get("again", {}),
        })
    return {"date": datetime.date.today().isoformat(), "rows": rows}


def again(folder):
    """{case: {verdict: how often}}, of the folders C01, C01-2, C01-3 and so on."""
    found = {}
    for path in sorted(pathlib.Path(folder).glob("*/verdict.json")):
        number = path.parent.name.split("-")[0]
        counts = found.setdefault(number, {})
        word = json.loads(path.read_text())["verdict"]
        counts[word] = counts.get(word, 0) + 1
    return found


def repeated(path):
    """What `again` said of this report, if it was run again."""
    beside = path.parent / "again" / path.name
    return json.loads(beside.read_text()) if beside.exists() else {}


def red(reports):
    """Row, case, how often it failed of how many, and the line that runs it again."""
    for name, report in reports:
        counts = report.get("again", {})
        for case, verdict in verdicts(report).items():
            if verdict == "fail":
                of = counts.get(case, {})
                often = f"{of.get('fail', 0)} of {sum(of.values())}" if of else "once"
                yield name, case, often, f"grid/run.sh --only {name} --case {case}"


def flat(path):
    rows = json.loads(pathlib.Path(path).read_text())["rows"]
    return {(row["row"], case): v for row in rows for case, v in row["verdicts"].items()}


def same(grid, paths):
    told = flat(grid)
    found = {(path.stem, case): v for path in paths
             for case, v in verdicts(json.loads(path.read_text())).items()}
    changed = sorted(k for k in told.keys() | found.keys() if told.get(k) != found.get(k))
    for row, case in changed:
        print(f"{row} {case}: the page says {told.get((row, case))}, "
              f"the report {found.get((row, case))}; make the page again with grid/run.sh")
    return 1 if changed else 0


def check(old, new):
    before, after = flat(old), flat(new)
    both = sorted(before.keys() | after.keys())
    changed = [key for key in both if before.get(key) != after.get(key)]
    for row, case in changed:
        print(f"{row} {case}: {before.get((row, case))} -> {after.get((row, case))}")
    return 1 if changed else 0


def main(words):
    match words:
        case ["not-run", claims, reason]:
            not_run(claims, reason)
        case ["page", compared_html, compared_md, out, *paths]:
            paths = [pathlib.Path(path) for path in paths]
            reports = [(path.stem, json.loads(path.read_text()) | {"again": repeated(path)})
                       for path in paths]
            written = {
                ".html": page(reports, pathlib.Path(compared_html).read_text()),
                ".md": markdown(reports, pathlib.Path(compared_md).read_text()),
                ".json": json.dumps(summary(reports), indent=1) + "\n",
            }
            for suffix, text in written.items():
                pathlib.Path(out + suffix).write_text(text)
        case ["failed", report]:
            found = verdicts(json.loads(pathlib.Path(report).read_text()))
            print(*bad(found, sorted(found), ("fail",)))
        case ["again", folder]:
            print(json.dumps(again(folder)))
        case ["same", grid, *paths]:
            return same(grid, [pathlib.Path(path) for path in paths])
        case ["check", old, new]:
            return check(old, new)
        case _:
            print(__doc__, file=sys.stderr)
            return 64
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
