package kbat.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.objects.UnwrapOption;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.types.DataType;
import scala.collection.immutable.List;

/** An expression whose argument is one value, and which is null for null. */
abstract class ValueExpression extends FunctionExpression {
    private static final long serialVersionUID = 1;

    private final DataType type;

    ValueExpression(String name, List<Expression> arguments, Object settings, DataType type) {
        super(name, arguments, settings);
        this.type = type;
    }

    /** Returns the result for a value that is not null. */
    abstract Object evaluate(Object value);

    /** Returns Java's source of the result. */
    abstract String source(CodegenContext context, String value);

    @Override
    public final DataType dataType() {
        return type;
    }

    @Override
    public final Object eval(InternalRow row) {
        Object value = argument(0).eval(row);
        return value == null ? null : evaluate(value);
    }

    /** Generates code as Spark's own expressions of one argument do, with the help of one with any type. */
    @Override
    public final ExprCode doGenCode(CodegenContext context, ExprCode code) {
        return new UnwrapOption(type, argument(0)).defineCodeGen(context, code, value -> source(context, value));
    }
}
