package kbat.spark;

import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.List;

/**
 * The parts of a value of several megabytes, such as a file, which are decoded one after the other: an array of structs,
 * each with the part's position and bytes. Most values are one part.
 */
public final class PartsExpression extends ValueExpression {
    private static final long serialVersionUID = 1;

    private static final long MAX_LENGTH = 4 << 20;
    private static final DataType TYPE = new ArrayType(
            new StructType().add("position", DataTypes.LongType, false).add("bytes", DataTypes.BinaryType, false), false);

    private final boolean isDivided;

    /** Divides values if the second argument is true. */
    PartsExpression(List<Expression> arguments) {
        super("kbat_parts", arguments, null, TYPE);
        isDivided = (Boolean) arguments.apply(1).eval(null);
    }

    @Override
    String reject() {
        return null;
    }

    @Override
    Expression with(List<Expression> arguments) {
        return new PartsExpression(arguments);
    }

    @Override
    Object evaluate(Object value) {
        return parts((byte[]) value, isDivided);
    }

    @Override
    String source(CodegenContext context, String value) {
        return PartsExpression.class.getName() + ".parts(" + value + ", " + isDivided + ")";
    }

    /** Returns the parts of a value. Generated code calls this. */
    public static ArrayData parts(byte[] value, boolean isDivided) {
        long[] points = {0};
        if (isDivided && value.length > MAX_LENGTH) {
            Library.load();
            try {
                points = NativeRows.points(value, MAX_LENGTH);
            } catch (IOException error) {
                throw Failures.unchecked(error);
            }
        }
        Object[] parts = new Object[points.length];
        for (int i = 0; i < parts.length; i++) {
            int start = (int) points[i];
            int end = i + 1 < parts.length ? (int) points[i + 1] : value.length;
            byte[] bytes = parts.length == 1 ? value : Arrays.copyOfRange(value, start, end);
            parts[i] = new GenericInternalRow(new Object[] {(long) start, bytes});
        }
        return new GenericArrayData(parts);
    }
}
