"""Redaction: passwords of database addresses are removed from all messages and outputs.

An address is a URI or a string of keywords. Both are parsed as by libpq, the client library of
PostgreSQL:

    postgresql://user:password@host:port,host/dbname?option=value     any scheme
    host=... user=... password='...'                                  keywords

`register` stores the secrets of an address when the user passes it. `redact` removes these secrets,
and the address itself, from a text. Every message of this package is redacted when its error or
warning is constructed, every line of the command line when it is written, and the facts of a report
when they are collected. So the code of a new message or output need not call `redact`.

    shown         secrets are replaced by ***, and so are options that are not known to be harmless
    not parsed    only the scheme is shown. If a password contains '@' or '/' unescaped, the address
                  is ambiguous: it counts as not parsed, and is rejected before it is used.
    short         a password such as 'iris' may be a word of the data. The address itself is always
                  replaced; such a password alone is replaced only in messages of the driver
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
_MAX_ADDRESSES = 1000  # largest number of addresses that are stored
_DISTINCTIVE = 6  # secrets of at least this length do not occur in other text by chance
_LONG = 12  # the same for secrets that consist only of letters or only of digits

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
_LITERAL = re.compile("'(?:[^']|'')*'")  # text literal of SQL
_MARKER = re.compile(  # start of a secret in a text that contains an address
    r"\b\w*(?:passw|passphrase|pwd|secret|token)\w*\s*=\s*|[A-Za-z][A-Za-z0-9+.-]*://(?=.*[@?])",
    re.IGNORECASE | re.DOTALL,
)
_LOOSE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://[^\s/?#@:]*:(?!\*\*\*@)\S*@")
_WORD = re.compile(r"\w{3,}")
_EXCERPT = re.compile(r"\s*^LINE \d+:.*", re.MULTILINE | re.DOTALL)

_addresses: dict[str, str] = {}  # masked text of each registered address, in every spelling
_secrets: dict[str, None] = {}  # distinctive secrets, in every spelling


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address of a database."""

    scheme: str  # empty for keywords
    options: tuple[tuple[str, str], ...]  # decoded; of repeated options the last one counts
    shown: str  # text of the address with its secrets masked

    @property
    def values(self) -> dict[str, str]:
        """Options by name, as returned by `psycopg.conninfo.conninfo_to_dict`."""
        return dict(self.options)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secret values, which must not be shown."""
        return tuple(value for name, value in self.options if value and _SECRET.search(name))


def is_address(text: object) -> bool:
    """Whether a text is the address of a database rather than the name of a file.

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
    """Return the parts of an address, or None if it is ambiguous or cannot be parsed.

    >>> parse_address("postgresql://ann:p%3Fq@host/db?sslmode=require").shown
    'postgresql://ann:***@host/db?sslmode=require'
    >>> parse_address(r"host=localhost password='it\\'s'").values
    {'host': 'localhost', 'password': "it's"}
    >>> parse_address("postgresql://ann:p/q@host/db") is None
    True
    """
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return _parse_uri(scheme[0], text[scheme.end() + 3 :])
    opaque = _OPAQUE.match(text)
    if opaque is not None and _dialect(opaque["scheme"]) in _DATABASES:
        return _parse_opaque(opaque["scheme"], opaque["rest"])
    return _parse_keywords(text) if _KEYWORD.match(text) is not None else None


def shown_address(text: str) -> str:
    """Return an address with its secrets masked. Other text is returned unchanged.

    >>> shown_address("postgresql://ann:secret@host/db?password=x")
    'postgresql://ann:***@host/db?password=***'
    >>> shown_address("postgresql://ann:p@q@host/db"), shown_address("loans.csv")
    ('postgresql://***', 'loans.csv')
    """
    if not is_address(text):
        return text
    address = parse_address(text)
    return _scheme_only(text) if address is None else address.shown


def split_table(url: str) -> tuple[str, str]:
    """Split `address#table` into address and table. A '#' within a password does not count.

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
        start += _userinfo_length(url[start:])
    rest, table = _split_fragment(url[start:])
    return url[:start] + rest, table


def register(*texts: object) -> None:
    """Store the secrets of addresses and queries, so that `redact` removes them."""
    for text in texts:
        if not isinstance(text, str) or text in _addresses:
            continue
        secrets = list(_secrets_in(text))
        if secrets or (is_address(text) and shown_address(text) != text):
            _addresses.update(dict.fromkeys(_escaped(text), masked(text)))
        for secret in filter(_is_distinctive, secrets):
            _secrets.update(dict.fromkeys(_spellings(secret)))
    for known in (_addresses, _secrets):
        while len(known) > _MAX_ADDRESSES * 40:
            del known[next(iter(known))]


def masked(text: str) -> str:
    """Return an argument, a query or an address with its secrets masked.

    >>> masked("SELECT * FROM postgres_scan('host=h password=p')")
    "SELECT * FROM postgres_scan('host=h password=***')"
    """
    if is_address(text):
        return shown_address(text)
    return "".join(shown for shown, _ in _pieces(text))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a query.

    Each piece is a masked text, with the address or secret that it replaces.

    Text literals that are addresses are masked one by one. After any other sign of a secret, such
    as `password=`, the rest of the query is hidden, because it is not known where the secret ends.
    """
    start = 0
    for literal in () if "'" in _LITERAL.sub("", text) else _LITERAL.finditer(text):
        address = literal[0][1:-1].replace("''", "'")
        if not is_address(address):
            continue
        before, after = text[start : literal.start()], text[literal.end() : literal.end() + 1]
        if _MARKER.search(before) or address.rstrip().endswith("=") or after.strip(",); \n\t"):
            break  # a quote within the secret may have ended the literal early
        yield before, ""
        yield f"'{shown_address(address)}'", address
        start = literal.end()
    rest = text[start:]
    marker = _MARKER.search(rest)
    if marker is None:
        yield rest, ""
    else:
        yield rest[: marker.end()] + MASK, rest[marker.end() :]


def redact(text: str, *, sources: Sequence[object] = ()) -> str:
    """Remove registered addresses and secrets from a text.

    `sources` are the address and the query that were passed to a driver. If `sources` are passed,
    their short secrets are also removed, as are single words of their secrets, because a driver may
    quote single words.
    """
    if _addresses:
        for known in _matching(text, _addresses):
            text = text.replace(known, _addresses[known])
        for secret in _matching(text, _secrets):
            text = text.replace(secret, MASK)
    addresses = [source for source in sources if isinstance(source, str)]
    secrets = {secret for address in addresses for secret in _secrets_in(address)}
    spellings = {s for secret in secrets for s in (*_spellings(secret), *_WORD.findall(secret))}
    for spelling in sorted(spellings, key=len, reverse=True):
        text = _whole_word(spelling).sub(MASK, text)
    return _LOOSE.sub(rf"\g<scheme>://{MASK}@", text) if "://" in text else text


def redact_facts(value: Any) -> Any:
    """Redact every text in nested dictionaries and lists."""
    if type(value) in (float, int, bool):  # most values are numbers
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return type(value)(map(redact_facts, value))
    if isinstance(value, Mapping):
        return {key: redact_facts(item) for key, item in value.items()}
    return value


def redact_exception(error: BaseException, *, address: object, query: str = "") -> None:
    """Redact an exception of a driver and all of its causes, in place.

    Drivers append an excerpt of the query to their messages. If the `query` contains secrets, the
    excerpt is removed, because it may begin or end within a secret.
    """
    has_secrets = masked(query) != query

    def redact_value(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        value = _EXCERPT.sub("", value) if has_secrets else value
        return redact(value, sources=(address, query))

    done: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        cause = pending.pop()
        if cause is None or id(cause) in done:
            continue
        done.add(id(cause))
        pending += [cause.__cause__, cause.__context__]
        cause.args = tuple(map(redact_value, cause.args))
        if getattr(cause, "__notes__", None):
            cause.__notes__ = [redact_value(note) for note in cause.__notes__]
        for name in ("filename", "filename2", "strerror"):
            if isinstance(getattr(cause, name, None), str):
                setattr(cause, name, redact_value(getattr(cause, name)))
        if isinstance(address, str) and hasattr(cause, "_pgconn"):
            cause._pgconn = None  # psycopg stores the connection options there


# --- parsing, as libpq does -----------------------------------------------------------------------


def _parse_uri(scheme: str, rest: str) -> Address | None:
    """Parse user:password@host:port,host:port/dbname?name=value&name=value."""
    if _dialect(scheme) in _FILES:
        rest, table = _split_fragment(rest)
        path, mark, query = rest.partition("?")
        address = _with_query(scheme, [], f"{scheme}://{path}", query if mark else None, table)
        if address is None and not _names_secret(rest):  # the '?' belongs to the name of the file
            shown = f"{scheme}://{rest}#{table}" if table else f"{scheme}://{rest}"
            return Address(scheme, (), shown)
        return address
    end = _userinfo_length(rest)
    userinfo, rest = rest[: max(end - 1, 0)], rest[end:]
    user, colon, password = userinfo.partition(":")
    rest, table = _split_fragment(rest)
    before, question, query = rest.partition("?")
    netloc, slash, name = before.partition("/")
    hosts = _hosts(netloc)
    if "@" in before or "@" in table or hosts is None:
        return None
    options = []
    for option, value in (("user", user), ("password", password), *hosts, ("dbname", name)):
        decoded = _decode(value)
        if decoded is None:
            return None
        if value:
            options.append((option, decoded))
    shown_userinfo = f"{user}{f':{MASK}' if colon else ''}@" if end else ""
    shown = f"{scheme}://{shown_userinfo}{netloc}{slash}{name}"
    return _with_query(scheme, options, shown, query if question else None, table)


def _userinfo_length(rest: str) -> int:
    """Return the length of `user:password@`: up to the first '@', if it comes before any '/'."""
    match = re.search("[@/]", rest)
    return match.end() if match is not None and match[0] == "@" else 0


def _split_fragment(rest: str) -> tuple[str, str]:
    """Split a text at '#', unless the '#' may belong to the value of a secret option."""
    before, _, table = rest.partition("#")
    name, equals, _ = before.partition("?")[2].rpartition("&")[2].partition("=")
    if equals and _SECRET.search(_decode(name) or name):
        return rest, ""
    return before, table


def _hosts(netloc: str) -> list[tuple[str, str]] | None:
    """Parse hosts and ports that are separated by commas. An IPv6 address is in brackets."""
    hosts, ports = [], []
    for host in re.split(r",(?![^\[]*\])", netloc):
        match = re.fullmatch(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:\[\]]*))(?::(?P<port>.*))?", host)
        if match is None:
            return None
        hosts.append(match["v6"] or match["name"] or "")
        ports.append(match["port"] or "")
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
    """Return the address with the options that follow the '?' added."""
    all_options, parts, after_secret = list(options), [], False
    for part in query.removesuffix("&").split("&") if query else ():
        name, equals, value = part.partition("=")
        option, decoded = _decode(name), _decode(value)
        if option is None or decoded is None or not equals or "=" in value:
            return None
        secret = _SECRET.search(option) is not None
        if not secret and option not in _KNOWN and (after_secret or "@" in part):
            return None  # this may be a part of the secret
        after_secret |= secret
        all_options.append((option, decoded))
        parts.append(f"{name}={value if option in _HARMLESS else MASK}")
    shown += "" if query is None else f"?{'&'.join(parts)}"
    return Address(scheme, tuple(all_options), f"{shown}#{table}" if table else shown)


def _parse_opaque(scheme: str, rest: str) -> Address | None:
    """Parse `md:name?option=value` or `duckdb:path`. Other schemes need '//'."""
    path, mark, query = rest.partition("?")
    if _dialect(scheme) not in (*_FILES, "md", "motherduck") or "@" in path or "=" in path:
        return None
    return _with_query(scheme, [], f"{scheme}:{path}", query if mark else None)


def _parse_keywords(text: str) -> Address | None:
    r"""Parse name = value, name = 'quoted \' value'."""
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


def _decode(text: str) -> str | None:
    """Decode percent-encoding and strip blanks. Return None if the encoding is invalid."""
    if _PERCENT.search(text):
        return None
    return unquote_to_bytes(text.strip(" \t\n\r\f\v")).decode("utf-8", "replace")


def _dialect(scheme: str) -> str:
    """Return the first part of a scheme: 'postgresql' for 'postgresql+psycopg'."""
    return re.split("[+:]", scheme)[0].lower()


def _names_secret(text: str) -> bool:
    return any(_SECRET.search(name) for name in re.findall(r"([A-Za-z_]\w*)\s*=", text))


def _scheme_only(text: str) -> str:
    """Mask all of an address that cannot be parsed, except its scheme."""
    scheme = _SCHEME.match(text)
    if scheme is not None:
        return f"{scheme[0]}://{MASK}"
    opaque = _OPAQUE.match(text)
    return f"{opaque['scheme']}:{MASK}" if opaque is not None else MASK


# --- secrets --------------------------------------------------------------------------------------


def _secrets_in(text: str) -> Iterator[str]:
    """Yield the secrets in an address or a query."""
    if not is_address(text):
        for _, hidden in _pieces(text):
            if is_address(hidden):
                yield from _secrets_in(hidden)
            elif hidden:
                yield hidden
        return
    address = parse_address(text)
    if address is not None:
        yield from address.secrets
        return
    rest = text[len(_scheme_only(text).removesuffix(MASK)) :]
    yield rest
    if "@" in rest:
        yield rest[rest.find(":") + 1 : rest.rfind("@")]


def _is_distinctive(secret: str) -> bool:
    """Whether a secret is unlikely to occur in other text by chance."""
    kinds = {(c.isalpha(), c.isdigit()) for c in secret}
    return len(secret) >= _LONG or (len(secret) >= _DISTINCTIVE and len(kinds) > 1)


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is spelt in addresses, command lines, JSON and HTML."""
    decoded = _decode(secret)
    for plain in dict.fromkeys((secret, secret if decoded is None else decoded)):
        encoded = [quote(plain, safe=""), quote(plain), quote_plus(plain)]
        for spelling in dict.fromkeys((plain, *encoded, *map(_lower_hex, encoded))):
            yield from _escaped(spelling)


def _lower_hex(text: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), text)


def _escaped(text: str) -> Iterator[str]:
    """Yield a text, and its escaped forms within quotes in several languages."""
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
    yield from (spelling for spelling in dict.fromkeys(others) if spelling != text)


def _matching(text: str, known: Mapping[str, Any]) -> list[str]:
    """Return the registered texts that occur in `text`, longest first."""
    return sorted((key for key in tuple(known) if key in text), key=len, reverse=True)


@lru_cache(maxsize=1024)
def _whole_word(secret: str) -> re.Pattern[str]:
    """Return a pattern that finds a secret as a whole word, not as part of a longer word."""
    before = r"(?<!\w)" if secret[:1].isalnum() else ""
    after = r"(?!\w)" if secret[-1:].isalnum() else ""
    return re.compile(f"{before}{re.escape(secret)}{after}")
