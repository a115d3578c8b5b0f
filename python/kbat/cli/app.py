"""All commands, and the options of `kbat` itself.

To add a command:

1. Write its function in a module of this package. Its parameters are the arguments and options (see `options.py`), and
   its docstring is the help, with an example, the JSON fields and the exit codes.
2. Add a row to `COMMANDS`: the name that users type, `module:function`, and a panel, the heading under which
   `kbat --help` lists it.

`guarded` turns the errors of every command into one line and an exit code, and adds the option `--debug`. A command
module is imported only if its command runs. What it imports itself decides how fast it starts: import PyArrow and
rich inside the functions that use them, after the arguments were checked.
"""

from typing import Annotated

import typer

import kbat
from kbat.cli import output
from kbat.cli.guard import WRONG_ARGUMENT, Debug, set_debug
from kbat.cli.lazy import Command, LazyGroup

READ = "Read"
CHECK = "Check and repair"
WRITE = "Write a copy"

COMMANDS = {
    "ls": Command("ls:ls", READ),
    "cat": Command("cat:cat", READ, at_damage=", --on-corrupt skip continues after it"),
    "batches": Command("batches:batches", READ, at_damage=", --on-corrupt skip continues after it"),
    "lookup": Command("lookup:lookup", READ),
    "dump": Command("dump:dump", READ),
    "stat": Command("stat:stat", READ),
    "audit": Command("stat:audit", READ),
    "producers": Command("producers:producers", READ),
    "transactions": Command("transactions:transactions", READ),
    "groups": Command("groups:groups", READ, at_damage=", --on-corrupt skip continues after it"),
    "topics": Command("topics:topics", READ),
    "advise": Command("advise:advise", READ),
    "report": Command("report:report", READ),
    # 1 means warnings there
    "verify": Command("verify:verify", CHECK, failed=WRONG_ARGUMENT),
    "recover": Command("repair:recover", CHECK),
    "salvage": Command("repair:salvage", CHECK),
    "rebuild-indexes": Command("repair:rebuild_indexes", CHECK),
    "restore": Command("restoring:restore", WRITE),
    "compact": Command("rewriting:compact", WRITE),
    "rewrite": Command("rewriting:rewrite", WRITE),
    "convert": Command("convert:convert", WRITE),
    "copy": Command("copy:copy", WRITE),
    "filter": Command("filtering:filter_records", WRITE),
    "export": Command("export:export", WRITE, at_damage=", --on-corrupt skip continues after it"),
    "import": Command("importing:import_records", WRITE),
}


class _Kbat(LazyGroup):
    table = COMMANDS


app = typer.Typer(
    name="kbat",
    cls=_Kbat,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    debug: Debug = False,
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
    set_debug(is_set=debug)
