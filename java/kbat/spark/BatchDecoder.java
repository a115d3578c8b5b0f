package kbat.spark;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Decodes values in tasks. Rust writes the rows in Spark's own form, so the JVM copies them once and makes no objects. */
public final class BatchDecoder implements Serializable {
    private static final long serialVersionUID = 1;

    private final String settings;
    private final TaskErrors errors = TaskErrors.forDriver();
    private transient boolean isLoaded;

    BatchDecoder(String settings) {
        this.settings = settings;
    }

    /** Returns the type of the decoded records. */
    DataType type() {
        Library.load();
        String[] columns = Native.call(() -> NativeRows.columns(settings));
        StructType record = new StructType();
        for (int i = 0; i < columns.length; i += 2) {
            record = record.add(columns[i], DataType.fromDDL(columns[i + 1]), true);
        }
        return new ArrayType(record, true);
    }

    /** Decodes a value. Generated code calls this. */
    public ArrayData decode(byte[] value) {
        return decode(value, 0);
    }

    /** Decodes a part of a value, as {@link PartsExpression} made it. Generated code calls this. */
    public ArrayData decode(InternalRow part) {
        return decode(part.getBinary(1), part.getLong(0));
    }

    private ArrayData decode(byte[] bytes, long position) {
        if (!isLoaded) {
            Library.load();
            isLoaded = true;
        }
        try {
            byte[] rows = NativeRows.decode(bytes, position, settings);
            UnsafeArrayData array = new UnsafeArrayData();
            array.pointTo(rows, Platform.BYTE_ARRAY_OFFSET, rows.length);
            return array;
        } catch (IOException | IllegalArgumentException error) {
            throw errors.ofValue(error);
        }
    }
}
