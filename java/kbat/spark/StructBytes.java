package kbat.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Converts structs to bytes in Spark's own form, {@code UnsafeRow}, and back. */
public final class StructBytes implements Serializable {
    private static final long serialVersionUID = 1;

    private final StructType type;
    private transient UnsafeProjection projection;

    StructBytes(StructType type) {
        this.type = type;
    }

    StructType type() {
        return type;
    }

    /** Returns the bytes of a struct. Generated code calls this. */
    public synchronized byte[] of(InternalRow struct) {
        if (projection == null) {
            projection = UnsafeProjection.create(type);
        }
        UnsafeRow row = struct instanceof UnsafeRow ? (UnsafeRow) struct : projection.apply(struct);
        return row.copy().getBytes(); // the projection writes the next row to the same memory
    }

    /** Returns the struct with some bytes. Generated code calls this. */
    public InternalRow of(byte[] bytes) {
        UnsafeRow row = new UnsafeRow(type.fields().length);
        row.pointTo(bytes, bytes.length);
        return row;
    }
}
