"""Passwords of database addresses, removed from everything that leaves the package.

An address is a URI or a string of keywords, parsed as libpq (PostgreSQL's client) parses them:

    postgresql://user:password@host:port,host/dbname?option=value     any scheme
    host=... user=... password='...'                                  keywords

`register` stores the secrets of an address on entry; `redact` removes them, and the address itself,
from a text. Every message of ours is redacted when its error or warning is constructed, every line
of the command line when it is written, and the facts of a report when they are collected, so that a
new message or output need not remember to.

    shown         secrets are replaced by ***, and so are options that are not known to be harmless
    not parsed    only the scheme is shown. A raw '@' or '/' in a password leaves several readings:
                  such an address counts as not parsed, and is refused before it is sent anywhere
    short         a password such as 'iris' may be a word of the data. Outside the address it is
                  replaced only in messages of the driver; the address itself always is
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote_to_bytes

MASK = "***"
_MOST = 1000  # addresses that are remembered
_DISTINCTIVE = 6  # characters of a secret that no other text contains by chance
_LONG = 12  # the same, for one made of letters only or of digits only

_FILES = ("duckdb", "sqlite")  # schemes of files, whose paths may contain any character
_DATABASES = (
    *_FILES,
    *("postgres", "postgresql", "jdbc", "mysql", "mariadb", "mssql", "oracle", "redshift"),
    *("snowflake", "clickhouse", "md", "motherduck", "ducklake"),
)
_HARMLESS = frozenset(  # options whose values are shown
    re.split(
        " ",
        "host hostaddr port dbname user username database passfile service servicefile "
        "application_name fallback_application_name client_encoding connect_timeout "
        "target_session_attrs load_balance_hosts keepalives keepalives_idle keepalives_interval "
        "keepalives_count tcp_user_timeout channel_binding require_auth requirepeer replication "
        "ssl sslmode sslnegotiation sslcompression sslcert sslkey sslrootcert sslcrl sslcrldir "
        "sslsni sslcertmode sslkeylogfile ssl_min_protocol_version ssl_max_protocol_version "
        "min_protocol_version max_protocol_version gssencmode gsslib gssdelegation krbsrvname "
        "mode cache access_mode read_only",
    )
)
_KNOWN = _HARMLESS | {"options", "authtype", "oauth_issuer", "oauth_client_id", "oauth_scope"}
_SECRET = re.compile(r"passw|passphrase|^pass$|pwd|secret|token|scram_\w+_key|api_?key", re.I)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?::[A-Za-z][A-Za-z0-9+.-]*)?(?=://)")
_OPAQUE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>(?!//).*)", re.DOTALL)
_KEYWORD = re.compile(r"\s*[A-Za-z_]\w*\s*=")
_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})|%00")
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_PORTS = re.compile(r"[\d,]*")
_LITERAL = re.compile("'(?:[^']|'')*'")  # of SQL
_MARKER = re.compile(  # where a secret may begin in a text that is no address as a whole
    r"\b\w*(?:passw|passphrase|pwd|secret|token)\w*\s*=\s*|[A-Za-z][A-Za-z0-9+.-]*://(?=.*[@?])",
    re.IGNORECASE | re.DOTALL,
)
_LOOSE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://[^\s/?#@:]*:(?!\*\*\*@)\S*@")
_WORD = re.compile(r"\w{3,}")
_EXCERPT = re.compile(r"\s*^LINE \d+:.*", re.MULTILINE | re.DOTALL)

_addresses: dict[str, str] = {}  # as passed in, and escaped: what is shown
_secrets: dict[str, None] = {}  # distinctive ones, in every spelling


@dataclass(frozen=True, slots=True)
class Address:
    """An address that was parsed."""

    scheme: str  # empty for keywords
    options: tuple[tuple[str, str], ...]  # decoded, in their order; later ones count
    shown: str  # without secrets

    @property
    def values(self) -> dict[str, str]:
        """The options by name, as `psycopg.conninfo.conninfo_to_dict` returns them."""
        return dict(self.options)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown."""
        return tuple(value for name, value in self.options if value and _SECRET.search(name))


def is_address(text: object) -> bool:
    """Whether a text is the address of a database, and not the name of a file.

    >>> is_address("postgresql://ann@host/db"), is_address("host=h password=p"), is_address("a.csv")
    (True, True, False)
    """
    if not isinstance(text, str):
        return False
    if _SCHEME.match(text) is not None:
        return True
    opaque = _OPAQUE.match(text)
    if opaque is not None and _dialect(opaque["scheme"]) in _DATABASES:
        return True
    return _KEYWORD.match(text) is not None and _names_secret(text) and not os.path.lexists(text)


@lru_cache(maxsize=256)
def parse_address(text: str) -> Address | None:
    """The parts of an address; None if it cannot be parsed, or has more than one reading.

    >>> parse_address("postgresql://ann:p%3Fq@host/db?sslmode=require").shown
    'postgresql://ann:***@host/db?sslmode=require'
    >>> parse_address(r"host=localhost password='it\\'s'").values
    {'host': 'localhost', 'password': "it's"}
    >>> parse_address("postgresql://ann:p/q@host/db") is None
    True
    """
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return _uri(scheme[0], text[scheme.end() + 3 :])
    opaque = _OPAQUE.match(text)
    if opaque is not None and _dialect(opaque["scheme"]) in _DATABASES:
        return _opaque(opaque["scheme"], opaque["rest"])
    return _keywords(text) if _KEYWORD.match(text) is not None else None


def shown_address(text: str) -> str:
    """Address with its secrets masked; other text unchanged.

    >>> shown_address("postgresql://ann:secret@host/db?password=x")
    'postgresql://ann:***@host/db?password=***'
    >>> shown_address("postgresql://ann:p@q@host/db"), shown_address("loans.csv")
    ('postgresql://***', 'loans.csv')
    """
    if not is_address(text):
        return text
    address = parse_address(text)
    return _unparsed(text) if address is None else address.shown


def split_table(url: str) -> tuple[str, str]:
    """An address and the table that it names after '#'; a '#' in a password names none.

    >>> split_table("postgresql://ann:a#b@host/db#loans")
    ('postgresql://ann:a#b@host/db', 'loans')
    >>> split_table("postgresql://host/db?password=a#b")
    ('postgresql://host/db?password=a#b', '')
    """
    scheme = _SCHEME.match(url)
    if scheme is None or parse_address(url) is None:
        return url, ""
    start = scheme.end() + 3
    if _dialect(scheme[0]) not in _FILES:
        start += _userinfo(url[start:])
    rest, table = _without_table(url[start:])
    return url[:start] + rest, table


def register(*texts: object) -> None:
    """Remember the secrets of addresses, or within queries, so that no text shows them."""
    for text in texts:
        if not isinstance(text, str) or text in _addresses:
            continue
        secrets = list(_found(text))
        if secrets or (is_address(text) and shown_address(text) != text):
            shown = masked(text)
            for spelled in _escaped(text):
                _addresses[spelled] = shown
        for secret in filter(_is_distinctive, secrets):
            _secrets.update(dict.fromkeys(_spellings(secret)))
    for known in (_addresses, _secrets):
        while len(known) > _MOST * 40:
            del known[next(iter(known))]


def masked(text: str) -> str:
    """Mask the secrets in an argument, a query or an address.

    >>> masked("SELECT * FROM postgres_scan('host=h password=p')")
    "SELECT * FROM postgres_scan('host=h password=***')"
    """
    if is_address(text):
        return shown_address(text)
    return "".join(shown for shown, _ in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """What a query shows, and the secret text it hides there.

    Literals that are addresses are shown as such. What follows any other mark of a secret is
    hidden to the end, for nothing says where the secret ends.
    """
    at = 0
    for literal in () if "'" in _LITERAL.sub("", text) else _LITERAL.finditer(text):
        address = literal[0][1:-1].replace("''", "'")
        if not is_address(address):
            continue
        before, after = text[at : literal.start()], text[literal.end() : literal.end() + 1]
        if _MARKER.search(before) or address.rstrip().endswith("=") or after.strip(",); \n\t"):
            break  # a quote within the secret may have ended the literal
        yield before, ""
        yield f"'{shown_address(address)}'", address
        at = literal.end()
    rest = text[at:]
    marker = _MARKER.search(rest)
    if marker is None:
        yield rest, ""
    else:
        yield rest[: marker.end()] + MASK, rest[marker.end() :]


def redact(text: str, *, sources: Sequence[object] = ()) -> str:
    """A text without registered addresses and secrets.

    With the `sources` that a driver was given, an address and a query, also without their short
    secrets and the words of these, which a driver may quote.
    """
    if _addresses:
        for known in _matching(text, _addresses):
            text = text.replace(known, _addresses[known])
        for secret in _matching(text, _secrets):
            text = text.replace(secret, MASK)
    secrets = {one for source in sources if isinstance(source, str) for one in _found(source)}
    spelled = {one for secret in secrets for one in (*_spellings(secret), *_WORD.findall(secret))}
    for secret in sorted(spelled, key=len, reverse=True):
        text = _alone(secret).sub(MASK, text)
    return _LOOSE.sub(rf"\g<scheme>://{MASK}@", text) if "://" in text else text


def redact_facts(value: Any) -> Any:
    """Dictionaries and lists of texts, each redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_facts(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(redact_facts, value))
    return value


def redact_exception(fault: BaseException, *, address: object, query: str = "") -> None:
    """Redact an exception of a driver in place, and all that led to it.

    Of a `query` with secrets the excerpt that drivers append is removed: it may begin or end within
    a secret.
    """
    excerpts = masked(query) != query

    def redacted(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        value = _EXCERPT.sub("", value) if excerpts else value
        return redact(value, sources=(address, query))

    seen: set[int] = set()
    waiting: list[BaseException | None] = [fault]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        one.args = tuple(map(redacted, one.args))
        if getattr(one, "__notes__", None):
            one.__notes__ = [redacted(note) for note in one.__notes__]
        for name in ("filename", "filename2", "strerror"):
            if isinstance(getattr(one, name, None), str):
                setattr(one, name, redacted(getattr(one, name)))
        if isinstance(address, str) and hasattr(one, "_pgconn"):
            one._pgconn = None  # psycopg stores the options of the connection there


# --- parsing, as libpq does -----------------------------------------------------------------------


def _uri(scheme: str, rest: str) -> Address | None:
    """user:password@host:port,host:port/dbname?name=value&name=value"""
    if _dialect(scheme) in _FILES:
        rest, table = _without_table(rest)
        path, mark, query = rest.partition("?")
        address = _with_query(scheme, [], f"{scheme}://{path}", query if mark else None, table)
        if address is None and not _names_secret(rest):  # a '?' in the name of the file
            shown = f"{scheme}://{rest}#{table}" if table else f"{scheme}://{rest}"
            return Address(scheme, (), shown)
        return address
    end = _userinfo(rest)
    userinfo, rest = rest[: max(end - 1, 0)], rest[end:]
    user, colon, password = userinfo.partition(":")
    rest, table = _without_table(rest)
    before, question, query = rest.partition("?")
    netloc, slash, name = before.partition("/")
    hosts = _hosts(netloc)
    if "@" in before or "@" in table or hosts is None:
        return None
    given = [("user", user), ("password", password), *hosts, ("dbname", name)]
    options = [(option, _decoded(value)) for option, value in given if value]
    plain = [(option, value) for option, value in options if value is not None]
    if len(plain) < len(options):
        return None
    who = f"{user}{f':{MASK}' if colon else ''}@" if end else ""
    shown = f"{scheme}://{who}{netloc}{slash}{name}"
    return _with_query(scheme, plain, shown, query if question else None, table)


def _userinfo(rest: str) -> int:
    """Characters of user:password@, up to the first '@' before any '/'."""
    place = re.search("[@/]", rest)
    return place.end() if place is not None and place[0] == "@" else 0


def _without_table(rest: str) -> tuple[str, str]:
    """Split at '#', unless it may belong to the value of a secret option."""
    before, _, table = rest.partition("#")
    name, equals, _ = before.partition("?")[2].rpartition("&")[2].partition("=")
    if equals and _SECRET.search(_decoded(name) or name):
        return rest, ""
    return before, table


def _hosts(netloc: str) -> list[tuple[str, str]] | None:
    """Hosts and ports between commas; an IPv6 address stands in brackets."""
    hosts, ports = [], []
    for one in re.split(r",(?![^\[]*\])", netloc):
        found = re.fullmatch(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>.*))?", one)
        if found is None:
            return None
        hosts.append(found["v6"] or found["name"] or "")
        ports.append(found["port"] or "")
    if _PORTS.fullmatch(",".join(ports)) is None:
        return None
    return [("host", ",".join(hosts)), ("port", ",".join(ports))]


def _with_query(
    scheme: str,
    options: Sequence[tuple[str, str]],
    shown: str,
    query: str | None,
    table: str = "",
) -> Address | None:
    """The address with the options that follow '?'."""
    found, parts, secret = list(options), [], False
    for part in query.removesuffix("&").split("&") if query else ():
        name, equals, value = part.partition("=")
        option, decoded = _decoded(name), _decoded(value)
        if option is None or decoded is None or not equals or "=" in value:
            return None
        named = _SECRET.search(option) is not None
        if not named and option not in _KNOWN and (secret or "@" in part):
            return None  # it may be a part of the secret
        secret |= named
        found.append((option, decoded))
        parts.append(f"{name}={value if option in _HARMLESS else MASK}")
    shown += "" if query is None else f"?{'&'.join(parts)}"
    return Address(scheme, tuple(found), f"{shown}#{table}" if table else shown)


def _opaque(scheme: str, rest: str) -> Address | None:
    """md:name?option=value, duckdb:path; others have a '//' that is missing."""
    path, mark, query = rest.partition("?")
    if _dialect(scheme) not in (*_FILES, "md", "motherduck") or "@" in path or "=" in path:
        return None
    return _with_query(scheme, [], f"{scheme}:{path}", query if mark else None)


def _keywords(text: str) -> Address | None:
    r"""name = value, name = 'quoted \' value'"""
    options, at, size = [], 0, len(text)
    while True:
        name = re.compile(r"\s*([^\s=]+)\s*=\s*").match(text, at)
        if name is None:
            break
        at, value, quoted = name.end(), [], text[name.end() : name.end() + 1] == "'"
        at += quoted
        while at < size and (text[at] != "'" if quoted else not text[at].isspace()):
            at += text[at] == "\\"
            value.append(text[at : at + 1])
            at += 1
        if quoted and at >= size:
            return None  # the quote is not closed
        at += quoted
        options.append((name[1], "".join(value)))
    if text[at:].strip():
        return None
    shown = " ".join(f"{name}={_keyword_value(name, value)}" for name, value in options)
    return Address("", tuple(options), shown)


def _keyword_value(name: str, value: str) -> str:
    if name not in _HARMLESS:
        return MASK
    escaped = value.replace("\\", r"\\").replace("'", r"\'")
    return escaped if value and not _BLANK.search(value) else f"'{escaped}'"


def _decoded(text: str) -> str | None:
    """A text without its percent-encoding and outer blanks; None if that is wrong."""
    if _PERCENT.search(text):
        return None
    return unquote_to_bytes(text.strip(" \t\n\r\f\v")).decode("utf-8", "replace")


def _dialect(scheme: str) -> str:
    """postgresql of postgresql+psycopg, jdbc of jdbc:postgresql."""
    return re.split("[+:]", scheme)[0].lower()


def _names_secret(text: str) -> bool:
    return any(_SECRET.search(name) for name in re.findall(r"([A-Za-z_]\w*)\s*=", text))


def _unparsed(text: str) -> str:
    """The scheme, which is all that is known for sure."""
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return f"{scheme[0]}://{MASK}"
    opaque = _OPAQUE.match(text)
    return f"{opaque['scheme']}:{MASK}" if opaque is not None else MASK


# --- secrets --------------------------------------------------------------------------------------


def _found(text: str) -> Iterator[str]:
    """The secrets in an address or a query."""
    if not is_address(text):
        for _, hidden in _pieces(text):
            if is_address(hidden):
                yield from _found(hidden)
            elif hidden:
                yield hidden
        return
    address = parse_address(text)
    if address is not None:
        yield from address.secrets
        return
    rest = text[len(_unparsed(text).removesuffix(MASK)) :]
    yield rest
    if "@" in rest:
        yield rest[rest.find(":") + 1 : rest.rfind("@")]


def _is_distinctive(secret: str) -> bool:
    """Whether a text that contains it can be meant to show nothing else."""
    kinds = {(c.isalpha(), c.isdigit()) for c in secret}
    return len(secret) >= _LONG or (len(secret) >= _DISTINCTIVE and len(kinds) > 1)


def _spellings(secret: str) -> Iterator[str]:
    """A secret as addresses, command lines, JSON and HTML spell it."""
    decoded = _decoded(secret)
    for plain in dict.fromkeys((secret, secret if decoded is None else decoded)):
        encoded = [quote(plain, safe=""), quote(plain), quote_plus(plain)]
        for one in dict.fromkeys((plain, *encoded, *map(_lower_hex, encoded))):
            yield from _escaped(one)


def _lower_hex(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text)


def _escaped(text: str) -> Iterator[str]:
    """A text, and the same within quotes of several languages."""
    yield text
    others = (
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        html.escape(text),
        html.escape(text, quote=False),
        text.replace("'", "'\"'\"'"),
        text.replace("'", "''"),
        text.replace("\\", r"\\").replace("'", r"\'"),
        os.path.normpath(text) if "/" in text else text,
    )
    yield from (one for one in dict.fromkeys(others) if one != text)


def _matching(text: str, known: Mapping[str, Any]) -> list[str]:
    """Those that a text contains, longest first."""
    return sorted((one for one in tuple(known) if one in text), key=len, reverse=True)


@lru_cache(maxsize=1024)
def _alone(secret: str) -> re.Pattern[str]:
    """A secret that is no part of a longer word."""
    before = r"(?<!\w)" if secret[:1].isalnum() else ""
    after = r"(?!\w)" if secret[-1:].isalnum() else ""
    return re.compile(f"{before}{re.escape(secret)}{after}")
