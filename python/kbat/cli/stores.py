"""The options of stores, which most commands have: how to open what a URL names, and where earlier segments are."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from kbat.cli.location import Location, Setting


def storage_option(value: str) -> Setting:
    """Parse NAME=VALUE. Messages never show the value."""
    name, equals, text = str(value).partition("=")
    if not equals or not name.strip():
        message = "a storage option has the form NAME=VALUE, such as region=eu-west-1"
        raise typer.BadParameter(message)
    return Setting(name.strip(), text)


def encryption_key(value: str) -> Setting:
    """Parse ID=PATH, with the path of an existing PEM file."""
    name, equals, path = str(value).partition("=")
    if not equals or not name or not path:
        message = "an encryption key has the form ID=PATH, such as key1=private.pem"
        raise typer.BadParameter(message)
    if not Path(path).is_file():
        message = f"the file {path!r} of the encryption key {name!r} does not exist"
        raise typer.BadParameter(message)
    return Setting(name, path)


def elsewhere(value: str) -> str:
    """Return a path or URL that belongs to another one. Whether it exists is known when it is opened."""
    if not value:
        message = "it is empty; name a directory or its URL"
        raise typer.BadParameter(message)
    try:
        return Location.parse(value).text
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


StorageOptions = Annotated[
    list[Setting] | None,
    typer.Option(
        "--storage-option",
        metavar="NAME=VALUE",
        parser=storage_option,
        help="How to open the store of a URL, with a name of object_store, such as region or endpoint. Repeat it for "
        "more. Set credentials in the environment, such as AWS_ACCESS_KEY_ID: other users see a command's arguments.",
        show_default=False,
    ),
]
EncryptionKeys = Annotated[
    list[Setting] | None,
    typer.Option(
        "--encryption-key",
        metavar="ID=PATH",
        parser=encryption_key,
        help="A private key for segments that Aiven's plugin encrypted: its id and a PEM file. Repeat it for more.",
        show_default=False,
    ),
]
Remote = Annotated[
    str | None,
    typer.Option(
        "--remote",
        metavar="LOCATION",
        parser=elsewhere,
        help="Where the earlier segments of these logs are, in tiered storage or in a backup: a directory or its URL. "
        "Each offset is read once, from PATH if it is there.",
        show_default=False,
    ),
]
RemoteLogMetadata = Annotated[
    str | None,
    typer.Option(
        "--remote-log-metadata",
        metavar="LOCATION",
        parser=elsewhere,
        help="The log directory with the topic __remote_log_metadata, or a partition directory or .log file of it: "
        "only segments that it has as finished are read. Default with --remote: the partitions in the log directory, "
        "if any.",
        show_default=False,
    ),
]

OPTIONS: dict[str, Any] = {
    "storage_option": StorageOptions,
    "encryption_key": EncryptionKeys,
    "remote": Remote,
    "remote_log_metadata": RemoteLogMetadata,
}


def opens_logs(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of stores to a command, and give it its locations with these options.

    Args:
        command: Reads its parameter `path` or `paths`, and writes `out`, if it has one.
    """
    signature = inspect.signature(command)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in OPTIONS.items()
    ]

    @wraps(command)
    def opened(**arguments: Any) -> None:  # noqa: ANN401 - those of the command
        settings, *others = (arguments.pop(name) for name in OPTIONS)
        out = arguments.get("out")
        if isinstance(out, Location):
            arguments["out"] = opened_target(out, settings)
        if "paths" in arguments:
            arguments["paths"] = [opened_source(path, out, settings, *others) for path in arguments["paths"]]
        else:
            arguments["path"] = opened_source(arguments["path"], out, settings, *others)
        command(**arguments)

    typed: Any = opened
    typed.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])
    typed.__annotations__ = {**command.__annotations__, **OPTIONS}
    return opened


def opened_source(
    source: Location,
    out: object,
    settings: Sequence[Setting] | None,
    *others: Any,  # noqa: ANN401 - the other options
) -> Location:
    """Return what a command reads, with its options. Storage options are those of the URL, or of both URLs."""
    is_of_target = isinstance(out, Location) and out.is_url and not source.is_url
    return source.opened_with(None if is_of_target else settings, *others)


def opened_target(out: Location, settings: Sequence[Setting] | None) -> Location:
    """Return what a command writes, with the storage options if it is a URL."""
    return out.opened_with(settings if out.is_url else None, None)
