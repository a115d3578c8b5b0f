package kbat.spark;

import java.io.Serializable;
import java.util.Objects;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult.TypeCheckFailure;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult.TypeCheckSuccess$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.List;

/**
 * An expression with arguments and settings, as Scala's compiler would make it of a case class.
 *
 * <p>Spark's type of {@code children} differs between Scala 2.12 and 2.13. The narrower result, which is that of 2.13,
 * gives this class the methods of both; an overload does so for {@code withNewChildrenInternal}.
 */
abstract class FunctionExpression extends Expression implements Serializable {
    private static final long serialVersionUID = 1;

    private final String name;
    private final List<Expression> arguments;
    private final Object settings;

    FunctionExpression(String name, List<Expression> arguments, Object settings) {
        this.name = name;
        this.arguments = arguments;
        this.settings = settings;
    }

    /** Returns the same expression with other arguments. */
    abstract Expression with(List<Expression> arguments);

    /** Returns null if the arguments have types that it takes, or else why not. */
    abstract String reject();

    final Expression argument(int number) {
        return arguments.apply(number);
    }

    final Object settings() {
        return settings;
    }

    @Override
    public final scala.collection.immutable.Seq<Expression> children() {
        return arguments;
    }

    @Override
    public final Expression withNewChildrenInternal(scala.collection.IndexedSeq<Expression> children) {
        return with(children.toList());
    }

    /** Returns the same expression with other arguments: the method of Scala 2.13. */
    public final TreeNode<?> withNewChildrenInternal(scala.collection.immutable.IndexedSeq<Expression> children) {
        return with(children.toList());
    }

    @Override
    public final TypeCheckResult checkInputDataTypes() {
        String reason = reject();
        return reason == null ? TypeCheckSuccess$.MODULE$ : new TypeCheckFailure(reason);
    }

    @Override
    public boolean nullable() {
        return true; // as results of Python functions
    }

    @Override
    public final String prettyName() {
        return name;
    }

    @Override
    public final int productArity() {
        return settings == null ? 1 : 2;
    }

    @Override
    public final Object productElement(int number) {
        return number == 0 ? arguments : settings;
    }

    @Override
    public final boolean canEqual(Object other) {
        return other != null && getClass() == other.getClass();
    }

    @Override
    public final boolean equals(Object other) {
        return canEqual(other)
                && arguments.equals(((FunctionExpression) other).arguments)
                && Objects.equals(settings, ((FunctionExpression) other).settings);
    }

    @Override
    public final int hashCode() {
        return 31 * arguments.hashCode() + Objects.hashCode(settings);
    }
}
