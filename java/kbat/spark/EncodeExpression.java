package kbat.spark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.List;

/** {@code kbat_encode(records, compression)}: record batches with the records in an array of structs. */
final class EncodeExpression extends FunctionExpression implements CodegenFallback {
    private static final long serialVersionUID = 1;

    private final TaskErrors errors = TaskErrors.forDriver();
    private transient UnsafeProjection projection;
    private transient String fields;

    /** Encodes the records in the first argument with the codec in the second, if there is one. */
    EncodeExpression(List<Expression> arguments) {
        super("kbat_encode", arguments, null);
    }

    @Override
    Expression with(List<Expression> arguments) {
        return new EncodeExpression(arguments);
    }

    @Override
    String reject() {
        DataType given = argument(0).dataType();
        if (!(given instanceof ArrayType) || !(((ArrayType) given).elementType() instanceof StructType)) {
            return "kbat_encode takes an array of structs whose fields are some of "
                    + "key, value, timestamp, headers, offset, not " + given.catalogString();
        }
        DataType codec = children().length() == 1 ? DataTypes.StringType : argument(1).dataType();
        return codec instanceof StringType || codec instanceof NullType
                ? null
                : "kbat_encode takes the name of a codec, such as 'zstd', not " + codec.catalogString();
    }

    /** Encodes the records of a row; without a name of a codec, they are not compressed. */
    @Override
    public Object eval(InternalRow row) {
        ArrayData array = (ArrayData) argument(0).eval(row);
        if (array == null) {
            return null;
        }
        Object codec = children().length() == 1 ? null : argument(1).eval(row);
        String name = codec == null || codec.toString().isEmpty() ? "none" : codec.toString();
        try {
            return encode(array, name);
        } catch (IOException | IllegalArgumentException error) {
            throw errors.ofValue(error);
        }
    }

    private synchronized byte[] encode(ArrayData array, String codec) throws IOException {
        if (projection == null) {
            Library.load();
            DataType type = argument(0).dataType();
            projection = UnsafeProjection.create(new DataType[] {type});
            fields = ((ArrayType) type).elementType().json();
        }
        UnsafeArrayData bytes = array instanceof UnsafeArrayData
                ? (UnsafeArrayData) array
                : projection.apply(new GenericInternalRow(new Object[] {array})).getArray(0);
        byte[] copy = new byte[bytes.getSizeInBytes()];
        Platform.copyMemory(
                bytes.getBaseObject(), bytes.getBaseOffset(), copy, Platform.BYTE_ARRAY_OFFSET, copy.length);
        return NativeRows.encode(copy, fields, codec);
    }

    @Override
    public ExprCode doGenCode(CodegenContext context, ExprCode code) {
        return CodegenFallback.super.doGenCode(context, code);
    }

    @Override
    public DataType dataType() {
        return DataTypes.BinaryType;
    }
}
