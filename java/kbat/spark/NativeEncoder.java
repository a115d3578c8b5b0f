package kbat.spark;

import java.io.IOException;

/** The functions of the Rust library for rows to encode. Exceptions and handles are those of {@link Native}. */
final class NativeEncoder {
    private NativeEncoder() {}

    /**
     * Opens an encoder.
     *
     * @param fields the JSON of the rows' type; the first field is a struct that identifies the log of a record
     * @param settings the options of {@code kbat.encode_batches} as a JSON object
     */
    static native long open(String fields, String settings);

    /**
     * Encodes rows, which are the bytes of an {@code UnsafeRow} after each number of its bytes. A log ends where the
     * first field changes.
     *
     * @param isLast whether the last log ends after these rows
     * @return each record batch that is complete, in a row: the struct of its log, the base offset, the last offset, the
     *     number of records and the bytes
     */
    static native byte[][] encode(long encoder, byte[] rows, boolean isLast) throws IOException;

    /** Closes an encoder and frees its memory. */
    static native void close(long encoder);
}
