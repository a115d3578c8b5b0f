package kbat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.List;

/** The bytes of a struct, or the struct of bytes; the type is the second argument, as JSON. */
final class StructExpression extends ValueExpression {
    private static final long serialVersionUID = 1;

    private final StructBytes bytes;

    private StructExpression(String name, List<Expression> arguments, StructBytes bytes, DataType type) {
        super(name, arguments, null, type);
        this.bytes = bytes;
    }

    static StructExpression toBytes(List<Expression> arguments) {
        return new StructExpression("kbat_struct_bytes", arguments, bytesOf(arguments), DataTypes.BinaryType);
    }

    static StructExpression ofBytes(List<Expression> arguments) {
        StructBytes bytes = bytesOf(arguments);
        return new StructExpression("kbat_struct", arguments, bytes, bytes.type());
    }

    private static StructBytes bytesOf(List<Expression> arguments) {
        return new StructBytes((StructType) DataType.fromJson(arguments.apply(1).eval(null).toString()));
    }

    private boolean isToBytes() {
        return dataType() instanceof BinaryType;
    }

    @Override
    String reject() {
        return null;
    }

    /** Returns false: no argument is null. */
    @Override
    public boolean nullable() {
        return false;
    }

    @Override
    Expression with(List<Expression> arguments) {
        return new StructExpression(prettyName(), arguments, bytes, dataType());
    }

    @Override
    Object evaluate(Object value) {
        return isToBytes() ? bytes.of((InternalRow) value) : bytes.of((byte[]) value);
    }

    @Override
    String source(CodegenContext context, String value) {
        return context.addReferenceObj("kbatStruct", bytes, StructBytes.class.getName()) + ".of(" + value + ")";
    }
}
