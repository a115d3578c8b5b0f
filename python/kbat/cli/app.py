"""All commands, and the options of `kbat` itself."""

from typing import Annotated

import typer

import kbat
from kbat.cli import output
from kbat.cli.audit import audit
from kbat.cli.cat import cat
from kbat.cli.dump import dump
from kbat.cli.guard import WRONG_ARGUMENT, guarded
from kbat.cli.ls import ls
from kbat.cli.repair import rebuild_indexes, recover, salvage
from kbat.cli.rewriting import compact, rewrite
from kbat.cli.verify import verify

app = typer.Typer(
    name="kbat",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(guarded(ls))
# 1 means warnings there
app.command()(guarded(verify, failed=WRONG_ARGUMENT))
app.command()(guarded(recover))
app.command()(guarded(salvage))
app.command("rebuild-indexes")(guarded(rebuild_indexes))
app.command()(guarded(audit))
app.command()(guarded(cat, at_damage=", --on-corrupt skip continues after it"))
app.command()(guarded(dump))
app.command()(guarded(compact))
app.command()(guarded(rewrite))


def _version(is_set: bool) -> None:  # noqa: FBT001 - typer calls it
    if is_set:
        output.write_line(f"kbat {kbat.__version__}")
        raise typer.Exit


@app.callback()
def kbat_command(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Read, verify and repair Kafka's log segments without a broker.

    No command changes its input, except `recover --in-place` and `rebuild-indexes` without OUT. Offsets are Kafka's,
    positions are bytes, times are UTC. Text shows sizes in KiB, MiB or GiB. JSON has sizes in bytes, and times in
    milliseconds since the epoch. JSON field names and exit codes are stable: later versions only add to them.

    Example: `kbat ls /var/lib/kafka/data`, then `kbat verify /var/lib/kafka/data/orders-0`

    Exit codes: 0; 1 if corruption stops the command, if files can't be read or written, and for an empty directory; 2
    for wrong arguments and for a PATH that is not a log, such as a text file or a compressed copy; 130 after Ctrl-C.
    `verify` exits with 1 for warnings and with 2 for errors. The help of each command lists its own exit codes.
    """
    del version
