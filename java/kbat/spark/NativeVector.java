package kbat.spark;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of the current batch, in the memory of Rust, which owns and frees it.
 *
 * <p>Rust describes a batch by nodes, depth first: a column, then its children. A node has five longs, laid out as in
 * Arrow's columnar format:
 *
 * <pre>
 *   nulls     address of a bitmap with a bit for each valid row, least significant first; 0 if no row is null
 *   nullsBit  the bit of row 0 in it
 *   nullCount
 *   a, b      numbers: a, address of the value of row 0; booleans: a, address of a bitmap, and b, the bit of row 0
 *             bytes and text: a, address of 32-bit offsets, and b, address of the bytes they count from
 *             arrays: a, address of 32-bit offsets into the child; structs: neither, row i is row i of the children
 * </pre>
 */
abstract class NativeVector extends ColumnVector {
    /** The longs of a node. */
    static final int NODE_LEN = 5;

    private int rows;
    private long nulls;
    private long nullsBit;
    private int nullCount;
    /** The two addresses of the node, which subclasses interpret. */
    long a;

    long b;

    NativeVector(DataType type) {
        super(type);
    }

    /** Returns a vector for a type, without rows. */
    static NativeVector of(DataType type) {
        if (type instanceof BinaryType || type instanceof StringType) {
            return new Bytes(type);
        }
        if (type instanceof BooleanType) {
            return new Bits(type);
        }
        if (type instanceof ArrayType) {
            return new Arrays((ArrayType) type);
        }
        if (type instanceof StructType) {
            return new Structs((StructType) type);
        }
        return new Numbers(type);
    }

    /** Returns the number of nodes, those of the children included. */
    int nodeCount() {
        return 1;
    }

    /** Takes the rows of a batch from the nodes at an index, and returns the index after them. */
    int update(int rowCount, long[] nodes, int at) {
        nulls = nodes[at];
        nullsBit = nodes[at + 1];
        nullCount = (int) nodes[at + 2];
        a = nodes[at + 3];
        b = nodes[at + 4];
        rows = rowCount;
        return at + NODE_LEN;
    }

    /** Returns about how many bytes of Rust's memory the batch's rows have. */
    long size() {
        return (long) rows * type.defaultSize();
    }

    final int rows() {
        return rows;
    }

    /** Forgets the batch. Reading a row is an error afterwards. */
    void clear() {
        rows = 0;
    }

    /** Checks that a row exists: outside of the batch is memory of others. */
    final void check(int row) {
        if (row < 0 || row >= rows) {
            throw new IllegalStateException("kbat: row " + row + " is not one of the batch's " + rows
                    + " rows; a row is only valid until the next batch is read, or the task ends");
        }
    }

    /** Has no effect: Rust owns the memory, and Spark closes vectors after each batch. */
    @Override
    public final void close() {}

    @Override
    public final boolean hasNull() {
        return nullCount > 0;
    }

    @Override
    public final int numNulls() {
        return nullCount;
    }

    @Override
    public final boolean isNullAt(int row) {
        check(row);
        return nulls != 0 && !bit(nulls, nullsBit + row);
    }

    static boolean bit(long bitmap, long bit) {
        return (Platform.getByte(null, bitmap + (bit >> 3)) >> (bit & 7) & 1) != 0;
    }

    @Override
    public boolean getBoolean(int row) {
        throw unsupported();
    }

    @Override
    public byte getByte(int row) {
        throw unsupported();
    }

    @Override
    public short getShort(int row) {
        throw unsupported();
    }

    @Override
    public int getInt(int row) {
        throw unsupported();
    }

    @Override
    public long getLong(int row) {
        throw unsupported();
    }

    @Override
    public final float getFloat(int row) {
        throw unsupported();
    }

    @Override
    public double getDouble(int row) {
        throw unsupported();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw unsupported();
    }

    @Override
    public final ColumnarMap getMap(int row) {
        throw unsupported();
    }

    @Override
    public final Decimal getDecimal(int row, int precision, int scale) {
        throw unsupported();
    }

    @Override
    public UTF8String getUTF8String(int row) {
        throw unsupported();
    }

    @Override
    public byte[] getBinary(int row) {
        throw unsupported();
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw unsupported();
    }

    private UnsupportedOperationException unsupported() {
        return new UnsupportedOperationException("kbat: a column of type " + type.catalogString() + " has no such value");
    }

    /** Whole numbers of any size, times and doubles. */
    private static final class Numbers extends NativeVector {
        Numbers(DataType type) {
            super(type);
        }

        @Override
        public byte getByte(int row) {
            check(row);
            return Platform.getByte(null, a + row);
        }

        @Override
        public short getShort(int row) {
            check(row);
            return Platform.getShort(null, a + 2L * row);
        }

        @Override
        public int getInt(int row) {
            check(row);
            return Platform.getInt(null, a + 4L * row);
        }

        @Override
        public long getLong(int row) {
            check(row);
            return Platform.getLong(null, a + 8L * row);
        }

        @Override
        public double getDouble(int row) {
            check(row);
            return Platform.getDouble(null, a + 8L * row);
        }
    }

    private static final class Bits extends NativeVector {
        Bits(DataType type) {
            super(type);
        }

        @Override
        public boolean getBoolean(int row) {
            check(row);
            return bit(a, b + row);
        }
    }

    /** Bytes and text. */
    private static final class Bytes extends NativeVector {
        Bytes(DataType type) {
            super(type);
        }

        @Override
        long size() {
            // offsets, and the bytes between the first and the last one
            return rows() == 0
                    ? 0
                    : 4L * rows() + Platform.getInt(null, a + 4L * rows()) - Platform.getInt(null, a);
        }

        @Override
        public UTF8String getUTF8String(int row) {
            if (isNullAt(row)) {
                return null;
            }
            int start = Platform.getInt(null, a + 4L * row);
            return UTF8String.fromAddress(null, b + start, Platform.getInt(null, a + 4L * row + 4) - start);
        }

        @Override
        public byte[] getBinary(int row) {
            if (isNullAt(row)) {
                return null;
            }
            int start = Platform.getInt(null, a + 4L * row);
            byte[] bytes = new byte[Platform.getInt(null, a + 4L * row + 4) - start];
            Platform.copyMemory(null, b + start, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
            return bytes;
        }
    }

    private static final class Arrays extends NativeVector {
        private final NativeVector elements;

        Arrays(ArrayType type) {
            super(type);
            elements = of(type.elementType());
        }

        @Override
        long size() {
            return 4L * rows() + elements.size();
        }

        @Override
        int nodeCount() {
            return 1 + elements.nodeCount();
        }

        @Override
        int update(int rowCount, long[] nodes, int at) {
            int next = super.update(rowCount, nodes, at);
            return elements.update(Platform.getInt(null, a + 4L * rowCount), nodes, next);
        }

        @Override
        void clear() {
            super.clear();
            elements.clear();
        }

        @Override
        public ColumnarArray getArray(int row) {
            if (isNullAt(row)) {
                return null;
            }
            int start = Platform.getInt(null, a + 4L * row);
            return new ColumnarArray(elements, start, Platform.getInt(null, a + 4L * row + 4) - start);
        }
    }

    private static final class Structs extends NativeVector {
        private final NativeVector[] fields;

        Structs(StructType type) {
            super(type);
            fields = java.util.Arrays.stream(type.fields())
                    .map(StructField::dataType)
                    .map(NativeVector::of)
                    .toArray(NativeVector[]::new);
        }

        @Override
        long size() {
            return java.util.Arrays.stream(fields).mapToLong(NativeVector::size).sum();
        }

        @Override
        int nodeCount() {
            return 1 + java.util.Arrays.stream(fields).mapToInt(NativeVector::nodeCount).sum();
        }

        @Override
        int update(int rowCount, long[] nodes, int at) {
            int next = super.update(rowCount, nodes, at);
            for (NativeVector field : fields) {
                next = field.update(rowCount, nodes, next);
            }
            return next;
        }

        @Override
        void clear() {
            super.clear();
            for (NativeVector field : fields) {
                field.clear();
            }
        }

        @Override
        public ColumnVector getChild(int ordinal) {
            return fields[ordinal];
        }
    }
}
