package kbat.spark;

import java.io.IOException;

/**
 * The functions of the Rust library for record batches in the values of a column. Rows are bytes in Spark's own form, of
 * {@code UnsafeArrayData} and {@code UnsafeRow}. Exceptions are those of {@link Native}.
 *
 * <p>{@code settings} are options of the data source as a JSON object, such as {@code {"columns": "offset,value"}}; empty
 * for those of {@code kbat_decode}.
 */
final class NativeRows {
    private NativeRows() {}

    /** Returns name and DDL type of each column of the decoded records. */
    static native String[] columns(String settings) throws IOException;

    /** Decodes bytes, which begin at a position of a value, to an array of structs. */
    static native byte[] decode(byte[] bytes, long position, String settings) throws IOException;

    /**
     * Returns the positions at which to divide bytes into parts of about {@code maxLength}; the first one is 0. Bytes with
     * a batch that is not valid are not divided.
     */
    static native long[] points(byte[] bytes, long maxLength) throws IOException;

    /** Encodes an array of structs to record batches; {@code fields} is the JSON of the struct type. */
    static native byte[] encode(byte[] records, String fields, String compression) throws IOException;
}
