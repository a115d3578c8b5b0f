package kbat.spark;

import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;

/**
 * Encodes the rows of each task for {@code kbat.spark.encode}. Rows and results are bytes of {@code UnsafeRow}, which
 * {@link StructExpression} converts from and to columns.
 */
public final class LogEncoder implements MapPartitionsFunction<byte[], byte[]> {
    private static final long serialVersionUID = 1;

    private final String fields;
    private final String settings;
    private final TaskErrors errors = TaskErrors.forDriver();

    private LogEncoder(String fields, String settings) {
        this.fields = fields;
        this.settings = settings;
    }

    /** Encodes the only column of a frame, to the only column of the returned one; arguments as in {@link NativeEncoder}. */
    public static Dataset<Row> encode(Dataset<Row> rows, String fields, String settings) {
        LogEncoder encoder = new LogEncoder(fields, settings);
        return rows.as(Encoders.BINARY()).mapPartitions(encoder, Encoders.BINARY()).toDF();
    }

    @Override
    public Iterator<byte[]> call(Iterator<byte[]> rows) {
        Library.load();
        try {
            return new EncodedRows(rows, NativeEncoder.open(fields, settings), errors);
        } catch (IllegalArgumentException error) {
            throw errors.of(error);
        }
    }
}
