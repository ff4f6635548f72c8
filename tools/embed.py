#!/usr/bin/env python3
"""Makes C: of the numbered migrations, the API description as JSON, the console's files, and tables of Unicode: categories
and widths."""
import hashlib
import json
import os
import re
import sys


def c_bytes(data):
    """An initialiser for an array: longer texts than C promises for a literal fit here."""
    rows = [", ".join(str(b) for b in data[i : i + 24]) for i in range(0, len(data), 24)]
    return ",\n    ".join(rows)


def schema(out, files):
    rows = []
    for path in sorted(files):
        number, name = re.match(r"(\d+)_(\w+)\.", os.path.basename(path)).groups()
        with open(path, encoding="utf-8") as f:
            rows.append((int(number), name, f.read()))
    kind = os.path.basename(path).split(".")[1]
    first = rows[0][0]  # of PostgreSQL the first one makes all of its time
    assert [r[0] for r in rows] == list(range(first, first + len(rows))), "migrations are numbered 1, 2, 3 …"
    parts = ['#include "store/migrations.h"\n']
    for number, name, text in rows:
        data = text.encode() + b"\0"
        parts.append(f"static const char SQL_{number}[] = {{\n    {c_bytes(data)}}};\n")
    if kind == "sqlite":
        data = new_file(rows).encode() + b"\0"
        parts.append(f"static const char SQL_NEW_FILE[] = {{\n    {c_bytes(data)}}};\n")
        parts.append(f'const struct migration NEW_FILE_SQLITE = {{{rows[-1][0]}, "new_file", SQL_NEW_FILE}};\n')
    parts.append(f"const struct migration MIGRATIONS_{kind.upper()}[] = {{")
    parts += [f'    {{{number}, "{name}", SQL_{number}}},' for number, name, _ in rows]
    parts.append(f"}};\nconst size_t MIGRATIONS_{kind.upper()}_COUNT = {len(rows)};\n")
    write(out, "\n".join(parts))


def new_file(migrations):
    """The statements that make what the migrations make of an empty file. Most of their time passes with changes of tables,
    after each of which SQLite reads the whole schema again."""
    import sqlite3

    db = sqlite3.connect(":memory:", isolation_level=None)
    db.create_function("pawl_key_hash", 1, lambda text: 0)  # for rows, of which there are none
    for _, _, text in migrations:
        db.executescript(text)
    made = db.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type <> 'table', rowid").fetchall()
    statements = [sql for _, _, sql in made]
    for table in (name for kind, name, _ in made if kind == "table"):
        values = " || ', ' || ".join(f'quote("{row[1]}")' for row in db.execute(f'PRAGMA table_info("{table}")'))
        rows = db.execute(f'SELECT {values} FROM "{table}"')
        statements += [f'INSERT INTO "{table}" VALUES ({row[0]})' for row in rows]
    return ";\n".join(statements) + ";\n"


def templates(out, *files):
    """Of src/cli/setup/templates: LANGUAGE/NAME."""
    parts, rows = ['#include "cli/setup/templates.h"\n'], []
    for number, path in enumerate(sorted(files)):
        with open(path, "rb") as f:
            data = f.read()
        parts.append(f"static const unsigned char FILE_{number}[] = {{\n    {c_bytes(data)}}};\n")
        rows.append(f'    {{"{os.path.basename(os.path.dirname(path))}", "{os.path.basename(path)}", FILE_{number}, {len(data)}}},')
    parts += ["const struct template_file TEMPLATE_FILES[] = {", *rows, "};\nconst size_t TEMPLATE_FILE_COUNT = %d;\n" % len(rows)]
    write(out, "\n".join(parts))


def openapi(out, path, version):
    import yaml

    with open(path, encoding="utf-8") as f:
        doc = yaml.load(f, yaml.CSafeLoader)
    doc["info"]["version"] = version
    data = json.dumps(doc, separators=(",", ":"), ensure_ascii=False, default=str).encode()
    write(out, '#include "api/openapi.h"\n\nconst unsigned char OPENAPI_JSON[] = {\n    %s};\n'
               "const size_t OPENAPI_JSON_LEN = %d;\n" % (c_bytes(data), len(data)))


CONSOLE_TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
                 ".svg": "image/svg+xml", ".woff2": "font/woff2"}
CONSOLE_FORMS = (".br", ".gz", "")  # enum console_form


def console(out, folder):
    """Of each file there are three: NAME.br, NAME.gz and NAME. The page has a folder for each depth, pages/0 and so on."""
    arrays, pages, files = [], [], []
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(n for n in names if os.path.splitext(n)[1] in CONSOLE_TYPES):
            path = os.path.relpath(os.path.join(root, name), folder)
            is_page = path.startswith("pages/")
            row = console_row(path, "" if is_page else path, os.path.join(root, name), arrays)
            (pages if is_page else files).append(row)
    assert pages and files, f"{folder} holds no console"
    write(out, '#include "api/console_files.h"\n\n%s\n%s\n%s' % (
        "\n".join(arrays), console_table("CONSOLE_PAGES", "CONSOLE_PAGE_COUNT", pages), console_table("CONSOLE_FILES", "CONSOLE_FILE_COUNT", files)))


def console_row(path, name, file, arrays):
    forms = []
    for ending in CONSOLE_FORMS:
        with open(file + ending, "rb") as f:
            data = f.read()
        symbol = "BYTES_%d" % len(arrays)
        arrays.append("static const unsigned char %s[] = {\n    %s};" % (symbol, c_bytes(data)))
        tag = hashlib.sha256(data).hexdigest()[:32]
        forms.append('{{(const char *)%s, %d}, "\\"%s\\""}' % (symbol, len(data), tag))
    hashed = "true" if path.startswith("assets/") else "false"
    return '    {"%s", "%s", %s, {%s}},' % (name, CONSOLE_TYPES[os.path.splitext(path)[1]], hashed, ", ".join(forms))


def console_table(name, count, rows):
    return "const struct console_file %s[] = {\n%s\n};\nconst size_t %s = %d;\n" % (name, "\n".join(rows), count, len(rows))


def unicode(out):
    import unicodedata

    spans, last = [], None
    for c in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(c))
        if category != last:
            spans.append(f'    {{{c}, "{category}"}},')
            last = category
    write(out, '#include "domain/schema/unicode.h"\n\nconst struct unicode_span UNICODE_SPANS[] = {\n%s\n};\n'
               "const size_t UNICODE_SPAN_COUNT = %d;\n" % ("\n".join(spans), len(spans)))


def columns(char):
    """Of a terminal: 2 for a wide character, 0 for one that combines with another or is invisible."""
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me", "Cf") and char != "\u00ad":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def widths(out):
    spans = []
    for c in range(sys.maxunicode + 1):
        width = columns(chr(c))
        if width != 1 and spans and spans[-1][1:] == [c - 1, width]:
            spans[-1][1] = c
        elif width != 1:
            spans.append([c, c, width])
    rows = "\n".join(f"    {{{first}, {last}, {width}}}," for first, last, width in spans)
    write(out, f'#include "cli/term/width.h"\n\nconst struct width_span WIDTH_SPANS[] = {{\n{rows}\n}};\nconst size_t WIDTH_SPAN_COUNT = {len(spans)};\n')


def write(out, text):
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    kind, out, *rest = sys.argv[1:]
    {"schema": lambda: schema(out, rest), "openapi": lambda: openapi(out, *rest), "unicode": lambda: unicode(out),
     "console": lambda: console(out, *rest), "templates": lambda: templates(out, *rest), "widths": lambda: widths(out)}[kind]()
