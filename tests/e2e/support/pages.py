"""Walking a list the way a client does: by next_cursor, and by the Link header."""
import re


def walk(client, path, tenant, between=None, by="cursor"):
    """All items, page after page; between() runs after each page. Fails when the two ways to go on disagree."""
    items, pages, target = [], 0, path
    while target:
        r = client.get(target, tenant=tenant)
        assert r.status == 200, r
        items += r.json["items"]
        pages += 1
        assert pages < 1000, "the walk does not end"
        cursor, link = r.json["next_cursor"], r.header("Link")
        assert (cursor is None) == (link is None), (cursor, link)
        if cursor is None:
            return items
        linked = re.fullmatch(r'<([^>]+)>; rel="next"', link).group(1)
        target = linked if by == "link" else f"{path}{'&' if '?' in path else '?'}cursor={cursor}"
        if between:
            between()
    return items
