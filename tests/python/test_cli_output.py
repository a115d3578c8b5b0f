"""What the command `kbat` writes on terminals, into files, and where nobody reads."""

from __future__ import annotations

import pytest

import kbat
from command_line import LOG_DIR, on_terminal, run
from kbat.cli import output


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
@pytest.mark.parametrize("command", ["ls", "audit"])
def test_tables_on_a_terminal_lose_nothing(command: str, columns: int) -> None:
    """The terminal wraps lines that are too long for it."""
    shown = on_terminal(columns, command, LOG_DIR).splitlines()
    expected = run(command, LOG_DIR).stdout.splitlines()
    assert [line for line in shown if set(line) != {"─"}] == [line for line in expected if set(line) != {"─"}]
    assert all(log.topic in "\n".join(shown) for log in kbat.LogDirectory(LOG_DIR).partitions if log.topic)
    (rule,) = [line for line in shown if set(line) == {"─"}]
    assert len(rule) <= columns


def test_a_table_has_columns_of_the_width_of_their_cells(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_table("a\x1btitle", ("name", "count"), [("漢字", "1"), ("x", "1,000,000")], left=("name",))
    assert capsys.readouterr().out == (
        "a\\x1btitle\n\nname      count\n───────────────\n漢字          1\nx     1,000,000\n\n"
    )
