"""`kbat.encode` takes time in proportion to the rows."""

from __future__ import annotations

import time

import pyarrow as pa

import kbat


def test_dictionaries_of_large_arrow_batches_are_not_read_again_for_each_record_batch() -> None:
    # about a thousand record batches: if each of them read all keys, this would take four times as long
    rows = 200_000
    keys = pa.array([row % 7 for row in range(rows)], pa.int32())
    dictionary = pa.DictionaryArray.from_arrays(keys, pa.array([b"v" * 50] * 7))
    times = []
    for values in (dictionary.dictionary_decode(), dictionary):
        start = time.process_time()
        encoded = kbat.encode(pa.table({"value": values}), timestamp=0, batch_bytes=16 << 10)
        times.append(time.process_time() - start)
    assert kbat.scan(encoded).count() == rows
    assert times[1] < 3 * times[0] + 0.1, times
